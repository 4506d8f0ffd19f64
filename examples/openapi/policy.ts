/** A policy with imported routes: docs/openapi-import.md. */
import { definePolicy } from 'portcullis'
import { override } from 'portcullis/openapi-routes'
import { routes } from './routes.generated.ts'

export default definePolicy({
  roles: { reader: ['orders:read'] },
  limits: { standard: '100/min' },
  routes: override(routes, {
    'GET /orders/:id': { limits: ['standard'] },
  }),
})
