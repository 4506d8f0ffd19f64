/**
 * The English texts of the pages. A text in braces is a slot that the page fills. Other languages have the
 * same names, see `PageLanguage`.
 */
export const ENGLISH = {
  'page.back': 'Back',
  'page.help': 'If you ask for help, name this request: {id}',
  'page.cause': 'Cause: {cause}',
  'links.privacy': 'Privacy',
  'links.terms': 'Terms',
  'links.support': 'Support',

  'signIn.title': 'Sign in',
  'signIn.choose': 'Choose how you sign in.',
  'signIn.link': 'Sign in',
  'signIn.again': 'Sign in again',
  'signIn.otherAccount': 'Use another account',

  'signOut.title': 'Sign out',
  'signOut.text': 'This ends your session in this browser.',
  'signOut.button': 'Sign out',
  'signedOut.title': 'You are signed out',
  'signedOut.text': 'Your session in this browser has ended.',

  'sessions.title': 'Your sessions',
  'sessions.text': 'You are signed in with these browsers. End a session that you do not know.',
  'sessions.here': 'This browser',
  'sessions.signedIn': 'Signed in: {time}',
  'sessions.active': 'Last active: {time}',
  'sessions.activeNow': 'Active now',
  'sessions.place': 'Place: {place}',
  'sessions.details': 'Details',
  'sessions.end': 'End this session',
  'browser.on': '{browser} on {system}',
  'browser.system': 'Browser on {system}',
  'browser.unknown': 'Unknown browser',

  'wait.moment': 'Try again in a moment.',
  'wait.minute': 'Wait a minute, then try again.',
  'wait.time': 'Try again in {time}.',
  'wait.link': 'Try again',

  'denied.permission.title': 'Your account has no access to this page',
  'denied.permission.text': 'Ask the operator of this service for access, or use another account.',
  'denied.account': 'You are signed in as {account}.',
  'denied.banned.title': 'Access is blocked',
  'denied.banned.text':
    'This service refuses requests of your account or of your network for now. Its operator can end this.',
  'denied.limited.title': 'Too many requests',
  'denied.session.title': 'You are not signed in',
  'denied.session.text': 'Your session in this browser has ended, and nothing was changed.',
  'denied.stronger.title': 'A stronger sign-in is needed',
  'denied.stronger.text':
    'What you wanted to do needs a stronger or a more recent sign-in. Nothing was changed.',
  'denied.refused.title': 'The request was refused',
  'denied.otherSite.text': 'It came from a page of another site, and nothing was changed.',
  'denied.400.title': 'This link is not valid',
  'denied.400.text': 'A part of the address is wrong.',
  'denied.401.title': 'This page is for programs',
  'denied.401.text': 'It needs a token, which a browser does not send.',
  'denied.404.title': 'This page does not exist',
  'denied.404.text': 'The address may have a typing error, or the page was removed.',
  'denied.405.title': 'This page cannot do that',
  'denied.405.text': 'Go back, and open the page again.',
  'denied.503.title': 'Not available at the moment',
  'denied.500.title': 'Something went wrong',
  'denied.500.text': 'The fault is not yours. Its cause is in the log of this service.',
  'denied.other.title': 'The request was not accepted',
  'denied.other.text': 'Go back, and try again.',

  'login.provider': 'The identity provider',
  'login.noHelp':
    'Signing in again does not help. Ask the operator of this service to correct its settings.',
  'login.outage.title': 'Sign-in is not available',
  'login.outage.text':
    'You cannot sign in at the moment. Users who are already signed in are not affected.',
  'login.outage.wait': 'Try again in a few seconds.',
  'login.canceled.text': 'The sign-in was canceled, or your account has no access.',
  'login.weak.text': 'This page needs a stronger method of sign-in than the one that you used.',
  'login.age.title': 'The age of the sign-in is not known',
  'login.ageMissing.text':
    'This page needs a recent sign-in. {provider} does not say when you signed in.',
  'login.ageUnusable.text':
    'This page needs a recent sign-in. {provider} states a time that cannot be used.',
  'login.old.title': 'A recent sign-in is needed',
  'login.old.text':
    'This page needs a recent sign-in. {provider} says that you signed in too long ago.',
  'login.elsewhere.title': 'The sign-in was started elsewhere',
  'login.elsewhere.text':
    'It was started in another browser, or this browser does not accept cookies.',
  'login.expired.title': 'The sign-in has expired',
  'login.expired.text': 'It took too long, or was used before.',
  'login.link.text': 'A parameter of the link is missing or wrong. Start the sign-in again.',
  'login.unknownSession.title': 'The session was not found',
  'login.unknownSession.text': 'It has probably ended already.',
  'login.account.title': 'Your account has no access',
  'login.account.text':
    '{provider} has confirmed who you are, but this service does not accept this account.',
  'login.provider.title': 'The provider has refused the sign-in',
  'login.provider.text': '{provider} has refused the sign-in: {cause}.',
  'login.request.title': 'This request is not valid',
  'login.unverified.title': 'The sign-in could not be verified',
  'login.idToken.text': '{provider} has sent an ID token that was not accepted.',
  'login.answer.text': '{provider} has sent an answer that was not accepted.',
} as const
