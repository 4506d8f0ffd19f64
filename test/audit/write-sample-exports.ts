/** `node test/audit/write-sample-exports.ts FOLDER`: writes an export of each format. */
import { readdirSync } from 'node:fs'
import { SAMPLES, writeSampleExports } from './sample-exports.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('name the folder')
await writeSampleExports(folder)
for (const name of Object.keys(SAMPLES))
  console.log(name, readdirSync(`${folder}/${name}/audit/0`).join(' '))
