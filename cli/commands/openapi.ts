/** `portcullis openapi`: routes from an OpenAPI document. */
import type { Command } from '@commander-js/extra-typings'
import { offlineCommand } from '../command.ts'

const FORMS = `
The module exports routes and the schemas of their inputs. Changes belong to the policy, and survive
the next import:

  import { override } from 'portcullis/openapi-routes'
  import { routes } from './routes.generated.ts'
  ... routes: override(routes, { 'GET /orders/:id': { limits: ['standard'] } })

Exit codes: 0 done, 1 --check found a difference, --strict found parts that are not mapped, or the
document has invalid extensions, 2 wrong usage or no OpenAPI document, 3 the URL did not answer.`

export function addOpenApiCommands(program: Command): void {
  const openapi = program.command('openapi').description('import routes from OpenAPI documents')
  offlineCommand(openapi, {
    name: 'import',
    does: 'write the routes and schemas of an OpenAPI 3.0 to 3.2 document as a TypeScript module',
    examples: [
      'portcullis openapi import openapi.yaml --out routes.generated.ts',
      'portcullis openapi import https://api.example.com/openapi.json --out routes.generated.ts',
      'portcullis openapi import openapi.yaml --out routes.generated.ts --check',
    ],
  })
    .argument('<document>', 'file or URL; JSON or YAML')
    .requiredOption('--out <file>', 'the module')
    .option('--prefix <path>', 'path before all paths (default: the path of the first server)')
    .option('--limit <name...>', 'limits of routes with a permission, without x-portcullis-limit')
    .option('--anonymous-limit <name...>', 'the same for anonymous routes')
    .option('--json-only', 'require JSON where the document allows other media types as well')
    .option('--remote-refs', 'follow references to URLs')
    .option('--check', 'write nothing; fail if the module is not current')
    .option('--strict', 'fail, and write nothing, if a part of the document is not mapped')
    .option('--force', 'replace a module that was edited')
    .addHelpText('after', FORMS)
    .action(async (document, options) => {
      const { importRoutes } = await import('../openapi/import-command.ts')
      await importRoutes(document, options)
    })
}
