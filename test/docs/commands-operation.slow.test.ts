/** Runs the commands of the documents about the operation of a gateway. */
import { OPERATION_GUIDES } from './documents.ts'
import { testCommandsOf } from './guide-commands.ts'

testCommandsOf(OPERATION_GUIDES, true)
