/** The same policy, with decisions cached for up to half a second. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { relations } from 'portcullis/relations'
import model from '../../portcullis.model.json' with { type: 'json' }

export default definePolicy({
  features: [operators(), authorizationServer()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {},
  routes: [
    {
      method: 'GET',
      path: '/orders/:id',
      permission: 'orders:read',
      relation: { object: 'order:{params.id}', relation: 'viewer' },
    },
  ],
  relations: relations({ model, issuers: ['https://issuer.test'], maxStalenessMs: 500 }),
  abuse: { bans: false, authenticationFailures: false },
})
