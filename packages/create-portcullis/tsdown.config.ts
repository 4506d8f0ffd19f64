/** `npm run build`: the command in one file that needs only Node. */
import { defineConfig } from 'tsdown'
import { thirdPartyNotices } from '../../dev/package/notices.ts'

export default defineConfig({
  entry: { 'create-portcullis': 'src/main.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20',
  deps: { alwaysBundle: /./, onlyBundle: false },
  plugins: [thirdPartyNotices('THIRD-PARTY.txt')],
  minify: true,
  dts: false,
  report: false,
  logLevel: 'warn',
  failOnWarn: true,
  checks: { bundlerTimings: false },
})
