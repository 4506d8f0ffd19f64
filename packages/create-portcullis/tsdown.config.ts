/** `npm run build`: the command in one file that needs only Node. */
import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: { 'create-portcullis': 'src/main.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20',
  deps: { alwaysBundle: /./, onlyBundle: false },
  minify: true,
  dts: false,
  report: false,
  logLevel: 'warn',
  failOnWarn: true,
  checks: { bundlerTimings: false },
})
