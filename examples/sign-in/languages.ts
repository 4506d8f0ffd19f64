/** Pages in English, German and French. */
import { german, type PageLanguage } from 'portcullis/languages'
import { signIn } from 'portcullis/sign-in'

const french: PageLanguage = {
  tag: 'fr',
  texts: {
    signIn: { 'signIn.title': 'Se connecter', 'wait.time': 'Réessayez dans {time}.' },
    scopes: { 'orders:read': 'Voir vos commandes' },
  },
}

export const feature = signIn({ branding: { name: 'Tea', languages: [german, french] } })
