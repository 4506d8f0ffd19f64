/**
 * `npm run -s release -- check TAG` exits with 1 unless the release of a tag may be published.
 * `npm run -s release -- notes TAG` prints its section of the changelog.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mistakesInRelease, notesOf } from './release/examine.ts'
import { ROOT } from './root.ts'

const [command = '', tag = ''] = process.argv.slice(2)
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')
const changelog = read('CHANGELOG.md')

if (command === 'notes') console.log(notesOf(changelog, tag.replace(/^v/, '')))
else if (command === 'check') {
  const mistakes = mistakesInRelease({ manifest: read('package.json'), changelog, tag })
  for (const mistake of mistakes) console.error(`release: ${mistake}`)
  if (mistakes.length > 0) process.exitCode = 1
} else {
  console.error('release: the command is check or notes, with a tag such as v1.2.0')
  process.exitCode = 2
}
