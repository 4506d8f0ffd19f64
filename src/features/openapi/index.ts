/** The description of the gateway's own calls: `import { openapi } from 'portcullis/openapi'`. */
import { type Feature, listFeatures } from '../../gateway/feature.ts'
import { openApiRoutes } from './routes.ts'

/** Returns `GET /-/openapi.json` and the page `GET /-/docs`, for the policy's `features`. */
export function openapi(): Feature {
  return {
    name: 'openapi',
    presence: 'more',
    create: ({ publicUrl, tokenIssuers, policy, sources, contributed }) => ({
      apps() {
        const { contributions, calls } = contributed()
        return [
          {
            at: '/-',
            app: openApiRoutes({
              publicUrl,
              sources: sources?.all,
              problems: listFeatures(policy).flatMap(({ problems = {} }) =>
                Object.entries(problems).map(([code, problem]) => ({ code, ...problem })),
              ),
              issuesTokens: tokenIssuers.includes(publicUrl),
              operations: [
                ...calls.map(({ operation }) => operation),
                ...contributions.flatMap(({ operations }) => operations?.() ?? []),
              ],
            }),
          },
        ]
      },
    }),
  }
}
