/** Runs the commands of the documents about the first steps. */
import { FIRST_GUIDES } from './documents.ts'
import { testCommandsOf } from './guide-commands.ts'

testCommandsOf(FIRST_GUIDES)
