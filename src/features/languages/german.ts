/** The German texts of the pages. */
import type { CompleteLanguage } from './complete-language.ts'

/** German, for `branding.languages` of `signIn()`. */
export const german: CompleteLanguage = {
  tag: 'de',
  texts: {
    signIn: {
      'page.back': 'Zurück',
      'page.help': 'Wenn Sie um Hilfe bitten, nennen Sie diese Anfrage: {id}',
      'page.cause': 'Ursache: {cause}',
      'links.privacy': 'Datenschutz',
      'links.terms': 'Nutzungsbedingungen',
      'links.support': 'Hilfe',

      'signIn.title': 'Anmelden',
      'signIn.choose': 'Wählen Sie, wie Sie sich anmelden.',
      'signIn.link': 'Anmelden',
      'signIn.again': 'Erneut anmelden',
      'signIn.otherAccount': 'Anderes Konto verwenden',

      'signOut.title': 'Abmelden',
      'signOut.text': 'Damit endet Ihre Sitzung in diesem Browser.',
      'signOut.button': 'Abmelden',
      'signedOut.title': 'Sie sind abgemeldet',
      'signedOut.text': 'Ihre Sitzung in diesem Browser ist beendet.',

      'sessions.title': 'Ihre Sitzungen',
      'sessions.text':
        'Mit diesen Browsern sind Sie angemeldet. Beenden Sie jede Sitzung, die Sie nicht kennen.',
      'sessions.here': 'Dieser Browser',
      'sessions.signedIn': 'Angemeldet: {time}',
      'sessions.active': 'Zuletzt aktiv: {time}',
      'sessions.activeNow': 'Gerade aktiv',
      'sessions.place': 'Ort: {place}',
      'sessions.details': 'Einzelheiten',
      'sessions.end': 'Diese Sitzung beenden',
      'browser.on': '{browser} auf {system}',
      'browser.system': 'Browser auf {system}',
      'browser.unknown': 'Unbekannter Browser',

      'wait.moment': 'Versuchen Sie es gleich noch einmal.',
      'wait.minute': 'Warten Sie eine Minute, und versuchen Sie es dann noch einmal.',
      'wait.time': 'Versuchen Sie es in {time} noch einmal.',
      'wait.link': 'Noch einmal versuchen',

      'denied.permission.title': 'Ihr Konto hat keinen Zugriff auf diese Seite',
      'denied.permission.text':
        'Bitten Sie den Betreiber dieses Dienstes um Zugriff, oder verwenden Sie ein anderes Konto.',
      'denied.account': 'Sie sind angemeldet als {account}.',
      'denied.banned.title': 'Der Zugriff ist gesperrt',
      'denied.banned.text':
        'Dieser Dienst weist Anfragen Ihres Kontos oder Ihres Netzes vorerst ab. Sein Betreiber kann das beenden.',
      'denied.limited.title': 'Zu viele Anfragen',
      'denied.session.title': 'Sie sind nicht angemeldet',
      'denied.session.text':
        'Ihre Sitzung in diesem Browser ist beendet, und es wurde nichts geändert.',
      'denied.stronger.title': 'Eine stärkere Anmeldung ist nötig',
      'denied.stronger.text':
        'Dafür ist eine stärkere oder neuere Anmeldung nötig. Es wurde nichts geändert.',
      'denied.refused.title': 'Die Anfrage wurde abgewiesen',
      'denied.otherSite.text': 'Sie kam von einer fremden Seite, und es wurde nichts geändert.',
      'denied.400.title': 'Dieser Link ist ungültig',
      'denied.400.text': 'Ein Teil der Adresse ist falsch.',
      'denied.401.title': 'Diese Seite ist für Programme',
      'denied.401.text': 'Sie braucht ein Token, das ein Browser nicht sendet.',
      'denied.404.title': 'Diese Seite gibt es nicht',
      'denied.404.text':
        'Die Adresse enthält vielleicht einen Tippfehler, oder die Seite wurde entfernt.',
      'denied.405.title': 'Das ist auf dieser Seite nicht möglich',
      'denied.405.text': 'Gehen Sie zurück, und öffnen Sie die Seite erneut.',
      'denied.503.title': 'Im Moment nicht verfügbar',
      'denied.500.title': 'Etwas ist schiefgegangen',
      'denied.500.text':
        'Der Fehler liegt nicht bei Ihnen. Die Ursache steht im Protokoll dieses Dienstes.',
      'denied.other.title': 'Die Anfrage wurde nicht angenommen',
      'denied.other.text': 'Gehen Sie zurück, und versuchen Sie es noch einmal.',

      'login.provider': 'Der Anmeldedienst',
      'login.noHelp':
        'Eine erneute Anmeldung hilft nicht. Bitten Sie den Betreiber dieses Dienstes, seine Einstellungen zu berichtigen.',
      'login.outage.title': 'Die Anmeldung ist nicht verfügbar',
      'login.outage.text':
        'Sie können sich im Moment nicht anmelden. Wer schon angemeldet ist, bemerkt davon nichts.',
      'login.outage.wait': 'Versuchen Sie es in einigen Sekunden noch einmal.',
      'login.canceled.text': 'Die Anmeldung wurde abgebrochen, oder Ihr Konto hat keinen Zugriff.',
      'login.weak.text':
        'Diese Seite braucht eine stärkere Art der Anmeldung als die, die Sie verwendet haben.',
      'login.age.title': 'Der Zeitpunkt der Anmeldung ist nicht bekannt',
      'login.ageMissing.text':
        'Diese Seite braucht eine neue Anmeldung. {provider} teilt nicht mit, wann Sie sich angemeldet haben.',
      'login.ageUnusable.text':
        'Diese Seite braucht eine neue Anmeldung. {provider} nennt eine Zeit, die nicht verwendbar ist.',
      'login.old.title': 'Eine neue Anmeldung ist nötig',
      'login.old.text':
        'Diese Seite braucht eine neue Anmeldung. {provider} teilt mit, dass Ihre zu lange zurückliegt.',
      'login.elsewhere.title': 'Die Anmeldung begann an anderer Stelle',
      'login.elsewhere.text':
        'Sie begann in einem anderen Browser, oder dieser Browser nimmt keine Cookies an.',
      'login.expired.title': 'Die Anmeldung ist abgelaufen',
      'login.expired.text': 'Sie hat zu lange gedauert, oder sie wurde schon verwendet.',
      'login.link.text':
        'Ein Parameter des Links fehlt oder ist falsch. Beginnen Sie die Anmeldung von vorn.',
      'login.unknownSession.title': 'Die Sitzung wurde nicht gefunden',
      'login.unknownSession.text': 'Sie ist wahrscheinlich schon beendet.',
      'login.account.title': 'Ihr Konto hat keinen Zugriff',
      'login.account.text':
        '{provider} hat bestätigt, wer Sie sind, aber dieser Dienst nimmt dieses Konto nicht an.',
      'login.provider.title': 'Der Anmeldedienst hat die Anmeldung abgewiesen',
      'login.provider.text': '{provider} hat die Anmeldung abgewiesen: {cause}.',
      'login.request.title': 'Diese Anfrage ist ungültig',
      'login.unverified.title': 'Die Anmeldung konnte nicht geprüft werden',
      'login.idToken.text': '{provider} hat ein ID-Token gesendet, das nicht angenommen wurde.',
      'login.answer.text': '{provider} hat eine Antwort gesendet, die nicht angenommen wurde.',
    },
    authorizationCode: {
      'consent.title': 'Zugriff erlauben?',
      'consent.text': '{app} möchte {service} mit dem Konto {account} verwenden.',
      'consent.otherAccount': 'Anderes Konto verwenden',
      'consent.byOperator': 'Der Betreiber dieses Dienstes hat diese App eingetragen.',
      'consent.byDocument': 'Diese App wird von {host} beschrieben.',
      'consent.unverified': 'Ungeprüft:',
      'consent.byItself': 'Diese App hat sich selbst eingetragen. Ihr Name ist nicht geprüft.',
      'consent.able': 'Sie kann dann:',
      'consent.places': 'Bei: {places}',
      'consent.toHost': 'Ihr Browser geht danach zu {host}.',
      'consent.toProgram':
        'Ihr Browser geht danach zu einem Programm auf diesem Computer ({host}).',
      'consent.toApp': 'Ihr Browser öffnet danach eine App ({scheme}).',
      'consent.caution': 'Erlauben Sie es nur, wenn Sie {app} gerade selbst gestartet haben.',
      'consent.allow': 'Erlauben',
      'consent.deny': 'Ablehnen',
      'consent.withdrawal': 'Sie können das später widerrufen: {link}',
      'apps.title': 'Apps mit Zugriff',
      'apps.none': 'Sie haben keiner App Zugriff erlaubt.',
      'apps.text': 'Wenn Sie den Zugriff einer App widerrufen, verliert sie ihn sofort.',
      'apps.allowed': 'Erlaubt: {day}',
      'apps.details': 'Einzelheiten',
      'apps.withdraw': 'Widerrufen',
      'refusal.outage.title': 'Im Moment nicht möglich',
      'refusal.outage.text': 'Laden Sie diese Seite gleich noch einmal.',
      'refusal.mistake.title': 'Diese Anfrage ist ungültig',
      'refusal.mistake.text':
        'Die App, von der Sie kommen, hat einen Fehler gemacht, oder der Link ist alt. Beginnen Sie in der App von vorn.',
      'refusal.access.title': 'Ihr Konto hat keinen Zugriff',
      'refusal.access.text':
        'Ihr Konto hat keine der Berechtigungen, die diese App braucht. Bitten Sie den Betreiber dieses Dienstes um eine Rolle, und beginnen Sie dann in der App von vorn.',
      'refusal.return':
        'Sie haben dieser App bisher nichts erlaubt. Wenn Sie ihr vertrauen: {link}.',
      'refusal.returnTo': 'zurück zu {place}',
    },
  },
}
