/**
 * What an event does to its subject.
 *
 * - `revokeSessions`: refuses the session that the event names. Without one: as `cutoff`.
 * - `cutoff`: refuses everything issued to the subject until now.
 * - `ban`: as `cutoff`, and refuses the subject until it is enabled again, for at most a year.
 * - `liftBan`: ends the ban of an earlier event. Only for `account-enabled`.
 * - `stepUp`: as `cutoff`, because only a new token can prove another login.
 * - `observe`: nothing. The audit event has the event.
 */
export const SIGNAL_ACTIONS = [
  'revokeSessions',
  'cutoff',
  'ban',
  'liftBan',
  'stepUp',
  'observe',
] as const
export type SignalAction = (typeof SIGNAL_ACTIONS)[number]
