import { Controller, Get, HttpCode, Module, Post, Req } from '@nestjs/common'
import type { Request } from 'express'
import { clientAddressOf, type GuardedRequest, type Principal } from 'portcullis/express'
import * as z from 'zod'
import { guard, Route } from './guard.ts'
import { addNote, notesOf } from './notes.ts'

const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const page = z.strictObject({ limit: z.coerce.number().int().min(1).max(100).default(20) })
const index = z.strictObject({ id: z.coerce.number().int().min(0) })

/** What a handler gets behind a guard with a schema. */
type With<Valid> = GuardedRequest<Principal, Valid>

@Controller('notes')
class NotesController {
  @Get()
  @Route(guard.require('notes:read').query(page))
  list(@Req() { caller, valid }: With<{ query: z.infer<typeof page> }>) {
    return { notes: notesOf(caller.subject).slice(0, valid.query.limit) }
  }

  @Get(':id')
  @Route(guard.require('notes:read').params(index))
  one(@Req() { caller, valid }: With<{ params: z.infer<typeof index> }>) {
    return { note: notesOf(caller.subject)[valid.params.id] ?? null }
  }

  @Post()
  @Route(guard.require('notes:write').limit('writes').body(newNote))
  add(@Req() { caller, valid }: With<{ body: z.infer<typeof newNote> }>) {
    return { note: addNote(caller.subject, valid.body.text) }
  }
}

@Controller()
class CallerController {
  @Get('about')
  @Route(guard.public())
  about(@Req() request: Request) {
    return { caller: request.caller?.subject ?? null, address: clientAddressOf(request) }
  }

  @Get('mine')
  mine(@Req() { caller }: Request) {
    return { caller: caller?.subject }
  }

  @Post('logout')
  @HttpCode(204)
  async logout(@Req() request: Request) {
    await guard.revoke(request)
  }
}

@Module({ controllers: [NotesController, CallerController] })
export class AppModule {}
