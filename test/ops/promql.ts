/** The parts of a PromQL expression, by the grammar of Prometheus. */
import { parser } from '@prometheus-io/lezer-promql'

export interface Expression {
  /** Positions of syntax errors; empty for a valid expression. */
  readonly mistakes: readonly string[]
  /** Names of metrics. */
  readonly metrics: readonly string[]
  /** Names of labels in matchers, groupings and `label_replace`. */
  readonly labels: readonly string[]
}

export function expressionOf(text: string): Expression {
  const mistakes: string[] = []
  const metrics: string[] = []
  const labels: string[] = []
  parser.parse(text).iterate({
    enter({ name, from, to, type, node }) {
      const part = text.slice(from, to)
      if (type.isError) mistakes.push(`${from}: ${part}`)
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.push(part)
      if (name === 'LabelName') labels.push(part)
    },
  })
  return { mistakes, metrics, labels }
}
