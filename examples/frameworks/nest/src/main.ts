/** A guarded app of Nest: see docs/guards.md. */
import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.ts'
import { routeGuard } from './guard.ts'

const { PORT = '3000' } = process.env

const app = await NestFactory.create(AppModule)
app.useGlobalGuards(routeGuard)
await app.listen(Number(PORT), '127.0.0.1')
console.log(`Listening on port ${PORT}`)
