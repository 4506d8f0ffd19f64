/** A model of the tests: orders in folders, groups, and an exclusion that can lead back to itself. */

/** As OpenFGA's API takes it. */
export const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'group',
      relations: { member: { this: {} } },
      metadata: {
        relations: {
          member: {
            directly_related_user_types: [{ type: 'user' }, { type: 'group', relation: 'member' }],
          },
        },
      },
    },
    {
      type: 'folder',
      relations: { viewer: { this: {} } },
      metadata: {
        relations: {
          viewer: {
            directly_related_user_types: [{ type: 'user' }, { type: 'group', relation: 'member' }],
          },
        },
      },
    },
    {
      type: 'order',
      relations: {
        parent: { this: {} },
        owner: { this: {} },
        blocked: { this: {} },
        viewer: {
          union: {
            child: [
              { this: {} },
              { computedUserset: { relation: 'owner' } },
              {
                tupleToUserset: {
                  tupleset: { relation: 'parent' },
                  computedUserset: { relation: 'viewer' },
                },
              },
            ],
          },
        },
        payer: {
          difference: {
            base: { computedUserset: { relation: 'viewer' } },
            subtract: { computedUserset: { relation: 'blocked' } },
          },
        },
      },
      metadata: {
        relations: {
          parent: { directly_related_user_types: [{ type: 'folder' }] },
          owner: { directly_related_user_types: [{ type: 'user' }] },
          blocked: {
            directly_related_user_types: [{ type: 'user' }, { type: 'order', relation: 'payer' }],
          },
          viewer: {
            directly_related_user_types: [{ type: 'user' }, { type: 'user', wildcard: {} }],
          },
        },
      },
    },
  ],
} as const
