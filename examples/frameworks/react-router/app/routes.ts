import { index, type RouteConfig, route } from '@react-router/dev/routes'

export default [
  index('routes/home.tsx'),
  route('about', 'routes/about.ts'),
  route('mine', 'routes/mine.ts'),
  route('notes', 'routes/notes.ts'),
  route('notes/:id', 'routes/note.ts'),
  route('logout', 'routes/logout.ts'),
] satisfies RouteConfig
