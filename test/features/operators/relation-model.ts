/** A model that uses every feature of tuples, in the form of OpenFGA's API. */
const direct = { this: {} }
const of = (relation: string) => ({ computedUserset: { relation } })
const user = { type: 'user' }
const member = { type: 'team', relation: 'member' }

export const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'team',
      relations: { member: direct },
      metadata: { relations: { member: { directly_related_user_types: [user, member] } } },
    },
    {
      type: 'folder',
      relations: { viewer: direct },
      metadata: { relations: { viewer: { directly_related_user_types: [user] } } },
    },
    {
      type: 'order',
      relations: {
        parent: direct,
        owner: direct,
        blocked: direct,
        editor: direct,
        viewer: {
          union: {
            child: [
              direct,
              of('owner'),
              {
                tupleToUserset: {
                  tupleset: { relation: 'parent' },
                  computedUserset: { relation: 'viewer' },
                },
              },
            ],
          },
        },
        can_edit: { difference: { base: of('editor'), subtract: of('blocked') } },
      },
      metadata: {
        relations: {
          parent: { directly_related_user_types: [{ type: 'folder' }] },
          owner: { directly_related_user_types: [user] },
          blocked: { directly_related_user_types: [user] },
          editor: { directly_related_user_types: [user, member] },
          viewer: { directly_related_user_types: [user, { type: 'user', wildcard: {} }, member] },
        },
      },
    },
  ],
}
