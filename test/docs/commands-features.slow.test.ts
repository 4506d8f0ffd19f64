/** Runs the commands of the documents about single features. */
import { FEATURE_GUIDES } from './documents.ts'
import { testCommandsOf } from './guide-commands.ts'

testCommandsOf(FEATURE_GUIDES, true)
