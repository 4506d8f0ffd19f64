/** A model for tests: orders in folders, groups, and an exclusion that can form a cycle. */
import {
  anyUser,
  computed,
  difference,
  direct,
  from,
  modelOf,
  typeOf,
  union,
  user,
  usersetOf,
} from '../model/json.ts'

const member = usersetOf('group', 'member')

/** The model as OpenFGA's API expects it. */
export const MODEL = modelOf(
  typeOf('group', { member: direct }, { member: [user, member] }),
  typeOf('folder', { viewer: direct }, { viewer: [user, member] }),
  typeOf(
    'order',
    {
      parent: direct,
      owner: direct,
      blocked: direct,
      viewer: union(direct, computed('owner'), from('viewer', 'parent')),
      payer: difference(computed('viewer'), computed('blocked')),
    },
    {
      parent: [{ type: 'folder' }],
      owner: [user],
      blocked: [user, usersetOf('order', 'payer')],
      viewer: [user, anyUser],
    },
  ),
)
