/** The actions of the console: the operators' calls that its forms run, by their ids. */
import type { CallInput } from '../../routes/admin/call.ts'

type Action = (form: URLSearchParams, reason: string) => CallInput

/** An absent or malformed number is refused by the call. */
const numberIn = (form: URLSearchParams, name: string): number =>
  Number(form.get(name) || Number.NaN)

const byId: Action = (form) => ({ params: { id: form.get('id') ?? '' } })

export const ACTIONS: Readonly<Record<string, Action>> = {
  createRevocation: (form, reason) => ({
    body: { kind: form.get('kind'), value: form.get('value'), reason },
  }),
  deleteRevocation: byId,
  createBan: (form, reason) => ({
    body: {
      kind: form.get('kind'),
      value: form.get('value'),
      seconds: numberIn(form, 'seconds'),
      reason,
    },
  }),
  deleteBan: byId,
  createLimitOverride: (form) => ({
    body: {
      limit: form.get('limit'),
      value: form.get('value'),
      requests: numberIn(form, 'requests'),
      expiresInSeconds: numberIn(form, 'expiresInSeconds'),
    },
  }),
  deleteLimitOverride: byId,
  disableApiKey: byId,
}
