/** Reports what a saved policy changes, and where its mistakes are, while wrangler serves it. */
import { existsSync } from 'node:fs'
import nodeModule from 'node:module'
import { join } from 'node:path'
import { createLogForPeople } from '../../dev/start/log-for-people.ts'
import { POLICY_FILE } from '../../dev/start/main-config.ts'
import type { Project } from '../../dev/start/project.ts'
import type { FollowedPolicy } from '../../dev/start/serving.ts'
import { shownPath } from '../../dev/start/shown-path.ts'
import { mistakesOf } from '../failure.ts'
import { locatedMistakes, policyReload } from './reload.ts'
import { policyVersions } from './versions.ts'
import { policyWatch } from './watch.ts'

/** The message of a policy with mistakes, from the Workers. */
const INVALID = 'The policy is not valid:'

/** Loads the policy in this process as well. A policy that only a Worker can load is not followed. */
export function followPolicy(project: Project, policyFile: string | undefined): FollowedPolicy {
  const { root } = project
  const file = policyFile ?? join(root, POLICY_FILE)
  const canLoad = nodeModule.registerHooks !== undefined && existsSync(file)
  if (canLoad) project.mapImports?.()
  const versions = policyVersions(file, root)

  return {
    reportChanges(signal, progress) {
      if (!canLoad) return
      void versions.load().then(
        (current) => {
          const log = createLogForPeople(root, progress)
          const reload = policyReload({
            versions,
            current,
            file,
            use: async () => {},
            log: (level, ...line) => level === 'info' && log(level, ...line),
          })
          policyWatch(versions.files)(async () => signal.aborted || (await reload('save')))
        },
        () => {},
      )
    },
    async located(message) {
      if (!canLoad || !message.startsWith(INVALID)) return message
      try {
        await versions.load()
        return message
      } catch (error) {
        const { name } = error as Error
        if (name !== 'Misconfigured') return message
        const lines = locatedMistakes(mistakesOf(error as Error), file).map(
          ({ place, message, suggestion }) => {
            const at = place && `${shownPath(root, place.file)}:${place.line}:${place.column}: `
            return `  - ${at ?? ''}${message}${suggestion === undefined ? '' : `; ${suggestion}`}`
          },
        )
        return [INVALID, ...lines].join('\n')
      }
    },
  }
}
