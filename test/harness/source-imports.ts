/** For `--import`: policies of a process import `portcullis` from the sources of this checkout. */
import { mapImports } from '../../dev/start/map-imports.ts'

mapImports()
