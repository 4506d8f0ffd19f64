/** Repeats the work of features without a request, until the process ends. */

import { logKind } from '../../errors.ts'
import type { Task } from '../../gateway/feature.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'

/** Runs each task now and after each pause. Returns the function that begins no further run. */
export function repeatTasks(tasks: readonly Task[], waitUntil: WaitUntil): () => void {
  const timers = new Map<Task, NodeJS.Timeout>()
  let isEnded = false

  async function run(task: Task): Promise<void> {
    try {
      await task.run(waitUntil)
    } catch (error) {
      logKind('background task', error)
    }
    if (isEnded) return
    const timer = setTimeout(() => waitUntil(run(task)), task.everySeconds * 1_000)
    timers.set(task, timer.unref())
  }

  for (const task of tasks) waitUntil(run(task))
  return () => {
    isEnded = true
    for (const timer of timers.values()) clearTimeout(timer)
  }
}
