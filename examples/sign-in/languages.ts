/** Pages in English, German and French. */
import { german, type PageLanguage } from 'portcullis/languages'
import { signIn } from 'portcullis/sign-in'

const french: PageLanguage = {
  tag: 'fr',
  texts: {
    signIn: { 'signOut.title': 'Se déconnecter', 'wait.time': 'Réessayez dans {time}.' },
    scopes: { 'orders:read': 'Voir vos commandes' },
  },
}

// German with one text of its own.
const teaGerman: PageLanguage = {
  ...german,
  texts: {
    ...german.texts,
    signIn: { ...german.texts.signIn, 'signedOut.title': 'Bis bald bei Tea' },
  },
}

export const feature = signIn({ branding: { name: 'Tea', languages: [teaGerman, french] } })
