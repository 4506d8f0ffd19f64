/** Runs the commands of the documents about the first steps. Continuous integration runs those of the usual guides. */
import { usualOrLong } from '../harness/long.ts'
import { FIRST_GUIDES, type Guide, USUAL_GUIDES } from './documents.ts'
import { testCommandsOf } from './guide-commands.ts'

testCommandsOf(usualOrLong<readonly Guide[]>(USUAL_GUIDES, FIRST_GUIDES))
