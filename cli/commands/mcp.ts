/** `portcullis mcp`: the policy of an MCP server from its own lists, and the tools of a gateway that changed. */
import type { Command } from '@commander-js/extra-typings'
import { offlineCommand, onlineCommand } from '../command.ts'

const HELP = `
Reads tools, prompts and resources of a server with streamable HTTP, and writes a module with the hash of
each tool. Spread it into mcp() in the policy: everything else stays hidden, and a tool whose definition changes is
hidden until you import it again. Read the definitions first: they instruct the model that reads them.

--check writes nothing, and exits with 1 if the server has changed: use it in continuous integration.

Exit codes: 0 done, 1 refused by the server, an answer that is not MCP, or a difference with --check, 2 wrong
usage, 3 the server did not answer.`

export function addMcpCommands(program: Command): void {
  const mcp = program
    .command('mcp')
    .description('MCP servers: their policy from their own lists, and tools that changed')
  offlineCommand(mcp, {
    name: 'import',
    does: 'write the tools, prompts and resources of an MCP server as a TypeScript module',
    examples: [
      'portcullis mcp import https://mcp.example.com/mcp --out books-server.generated.ts',
      'portcullis mcp import https://mcp.example.com/mcp --out books-server.generated.ts --check',
      'portcullis mcp import https://mcp.example.com/mcp --out books-server.generated.ts --token-stdin < token.txt',
    ],
  })
    .argument('<url>', 'the endpoint of the MCP server')
    .requiredOption('--out <file>', 'the module')
    .option('--token-stdin', 'read an access token for the server from standard input')
    .option('--check', 'compare the server with the module, and write nothing')
    .option('--force', 'replace a file that was edited')
    .addHelpText('after', HELP)
    .action(async (url, options) => {
      const { importServer } = await import('../mcp/import-command.ts')
      await importServer(url, options)
    })
  onlineCommand(mcp, {
    name: 'tools',
    does: 'list the tools of the gateway, those with a changed definition first; its policy needs console()',
    examples: ['portcullis mcp tools', 'portcullis mcp tools --changed --json'],
  })
    .option('--changed', 'only tools with another definition than the approved one')
    .action(async (options) => {
      const { listTools } = await import('../mcp/tools-command.ts')
      await listTools(options)
    })
}
