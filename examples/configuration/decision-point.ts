/** A policy with OpenFGA as the policy decision point. docs/configuration.md shows its fields. */
import { definePolicy } from 'portcullis'
import { openfga } from 'portcullis/openfga'
import { relations } from 'portcullis/relations'
import model from '../../portcullis.model.json' with { type: 'json' }

export default definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {},
  routes: [
    {
      method: 'GET',
      path: '/orders/:id',
      permission: 'orders:read',
      relation: { object: 'order:{params.id}', relation: 'viewer' },
    },
  ],
  tenantIssuers: ['https://idp.example.com'],
  relations: relations({ model, subject: 'user:{issuer}|{subject}', authority: openfga() }),
})
