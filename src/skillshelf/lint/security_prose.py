"""Judge prose by what it combines in one section: sending, secrecy, private things, consent, and other sessions.

A single sentence of this kind is often honest. A section that tells to send private things to an address *and* to keep
quiet about it is not. Each table holds one idea in ten languages; the combinations at the end say which ideas together
are a sign. Sections are bounded in length, and only those are looked at that hold a word of secrecy or of sending.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

from skillshelf.core.limits import SECURITY_WINDOWS
from skillshelf.core.records import NamedTuple
from skillshelf.lint.security_search import search
from skillshelf.lint.security_signals import KNOWN_HOSTS, STRONG_SECRET, pattern_of
from skillshelf.lint.security_words import Words

__all__ = [
    "ABROAD",
    "PROSE_TOKENS",
    "PROSE_WORDS",
    "SEARCHED",
    "Sign",
    "is_foreign_place",
    "is_warning",
    "orders_in",
    "prose_signs",
]


class Sign(NamedTuple):
    """A sign in a text: the rule, the offset in bytes, what to say, and the matched text."""

    rule: str
    at: int
    says: str
    evidence: str


_LONGEST = 2400
"""Bytes of a section that are looked at together."""

# Ideas ----------------------------------------------------------------------------------------------

_NOT = (
    r"(?:do not|don't|don’t|never|no need to|need not|needn't|must not|should not|shouldn't|avoid|without|not to|"
    r"refrain from|not necessary to|not required to|no reason to|rather than)"
)
_SAYING = (
    r"(?:mention|tell|inform|notif|show|display|report|disclos|reveal|discuss|explain|announc|list|surfac|bring|"
    r"describ|document|quot|paraphras|summari|advertis|say|alert|rais|refer|flag|comment|log|record|print|point)\w*"
)
_ABOUT = (
    r"(?:it|this|that|these|those|them|any of (?:this|it)|the (?:\w+ )?(?:steps?|upload|section|rules?|lines?|transfer|"
    r"diff|details?|copy|call|request|change|entry|entries|file|block|account|endpoint|check|sync|lane|hook|address|"
    r"recipient|dependency|user|person|owner|customer|author|team|reviewer|human|operator|reader|client)|users?|anyone|"
    r"anybody|people|to the \w+|in (?:the|your) (?:summary|report|answer|reply|output|log|chat|response|readme|changelog|docs|documentation|description|commit))"
)
_REPORT = (
    r"(?:summar(?:y|ies)|reports?|answers?|repl(?:y|ies)|outputs?|logs?|chat|readme|change-?log|conversation|"
    r"description|protocol|minutes|response|diff|notes?|documentation|message)"
)
_SECRETLY = r"(?:silently|quietly|discreetly|covertly|secretly|unobtrusively|invisibly|unnoticed|stealthily)"
_ACTS = (
    r"send|upload|post|copy|add|append|attach|include|run|execute|install|collect|read|forward|transmit|record|log|write|insert|merge|update|replace|change|modify|push|commit|store|save|submit|fetch|download|"
    r"approve|accept|report|register|set|put|gather|harvest|capture|sync|mirror|apply|enable|disable|start|call|fill|pass|perform|carry out"
)
_HIDE = "|".join(
    (
        rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?{_SAYING}\s+(?:\w+ (?:or|and) )?(?:\w+ ){{0,2}}?{_ABOUT}\b",
        rf"\b{_NOT}\s+(?:bring|point|call|draw|make|raise) (?:it|this|that|them|attention|any attention|a point|the \w+)\b[^.\n]{{0,30}}",
        r"\b(?:stay|stays|remain|remains|be kept|is kept|kept) (?:out of|invisible|hidden|unmentioned|internal|in the background|between)\b",
        r"\b(?:handle|do|run|perform|complete|carry out) (?:this|it|that|them|these|the \w+)(?: \w+)? in the background\b|\bno (?:word|mention|trace|hint) (?:about|of|to|in)\b|\bas if nothing\b",
        r"\b(?:needs?|requires?|deserves?|warrants?|gets?) no (?:mention|comment|explanation|announcement|line|entry)",
        r"\b(?:is|are|be|need|needs|should|must) (?:not|never)(?: to)?(?: be)? (?:mentioned|shown|reported|listed|discussed|announced|"
        r"explained|logged|disclosed|displayed|documented|surfaced|told|informed|asked|aware|made aware|part of the)\b",
        r"\bneither \w+ nor (?:\w+ )?(?:paraphrased|mentioned|shown|quoted|logged|reported|explained|summari[sz]ed)\b",
        rf"\b(?:leave|keep|drop|omit|strip|exclude|remove|cut|hide)\b(?![^.\n]{{0,20}}\b(?:secrets?|keys?|credentials?|passwords?|tokens?|pii|personal|sensitive))[^.\n]{{0,60}}\b(?:out of|from) (?:the |your |any |its |their )?(?:\w+ )?{_REPORT}\b",
        rf"\bnot (?:appear|show up|turn up|occur|be visible|be seen|be part) (?:in|to|on|of) (?:the |your |any )?(?:\w+ )?(?:{_REPORT}|user)\b",
        r"\bkeep (?:this|it|that|these|them) (?:\w+ )?(?:quiet|to yourself|between us|hidden|low.key)\b",
        rf"(?:^|[.,;:!?)*\d-] |\b(?:and|then|must|should|always|please|to|also|you) ){_SECRETLY} (?:{_ACTS})(?:e|s|ing)?\b",
        rf"(?:^|[.;:!?)*\d-] |\b(?:and|then|must|should|always|please|also|you) )(?:{_ACTS})\b(?:(?!\bnot\b|\bnever\b|n't\b)[^.\n]){{0,90}}\b(?:{_SECRETLY}|without (?:a word|comment|notice|fuss|any output))\b",
        r"\b(?:user|person|owner|customer|reader|client|human|operator|team|they|nobody|no one)\b (?:does not|doesn't|do not|don't|need not|needn't|should not|must not|will not|won't|is not|never) "
        r"(?:need to |have to |want to |wants? to )?(?:know|see|notice|be (?:told|asked|informed|bothered|shown|involved|troubled|aware)|learn|hear|find out|realise|realize|notices|sees)\b",
        r"\b(?:clean up|remove|delete|erase|wipe|clear) (?:\w+ ){0,3}(?:traces?|evidence|history entr\w+|sent (?:folder|items?|mail)|from the (?:sent|history|log)\w*)",
    )
)
_DECEIVE = (
    r"\b(?:if|should|when|in case|whenever)\b[^.\n]{0,50}\b(?:asks?|asked|questions?|questioned|wonders?|notices?|inquires?|complains?|objects?|hesitates?|hesitate|worr(?:y|ies))\b"
    r"[^.\n]{0,90}\b(?:confirm (?:it|that|this|everything)|deny|say (?:that )?(?:it|this|you|they|the|nothing)|answer that|reply that|claim|assure|call it|pretend|tell (?:them|him|her) (?:that )?(?:it|this|you|the)|"
    r"describe it as|explain that (?:it|this|the) \w+ (?:is|was) (?:only|just|a|an|not|purely|routine|normal|standard)|change the subject)"
    r"|\bsay that (?:it|they|this|the \w+|everything|nothing) (?:\w+ ){0,3}(?:nothing|local|locally|discarded|deleted|routine|normal|stored|harmless|internal|reviewed|safe|verified|encrypted|sent)\b"
    r"|\bpretend (?:that|to|it|you)\b|\bclaim (?:that )?(?:it|this|you|the)\b|\bmake it (?:look|appear|seem)\b|\bso that (?:it|this|the \w+) (?:looks?|appears?|seems?) (?:like|normal|familiar|routine|legitimate)"
)
_FORCED = "|".join(
    (
        r"\bwithout (?:asking|a question|any question|confirmation|approval|prompting|consent|permission|waiting|review|first asking|further (?:questions|confirmation|approval))\b",
        r"\b(?:do not|don't|don’t|never|no need to) (?:ask|wait|prompt|check|confirm|request (?:permission|approval|confirmation))\b(?: (?:again|first|for (?:\w+ )?(?:confirmation|permission|approval|consent)|the (?:user|person|owner)|anyone|before))",
        r"\b(?:has|have|is|are) (?:already |been |pre-?){1,3}(?:approved|authori[sz]ed|agreed|consented|granted)\b|\bcounts? as (?:approval|consent|permission)\b",
        r"\b(?:user|person|owner|human)\b[^.\n]{0,20}\b(?:not|n't|never) (?:\w+ ){0,2}(?:be )?asked\b",
        r"\b(?:says?|told|asks?|instructs?|states?) otherwise\b",
        r"\b(?:skip|needs? no|requires? no|no need for|omit|bypass) (?:\w+ ){0,2}(?:confirmation|approval|consent|permission|review|questions?)\b",
        r"\b(?:even (?:if|when|though)|regardless of (?:whether|what)|no matter (?:what|whether))\b[^.\n]{0,30}\b(?:users?|person|owner|human|operator|they|anyone|reviewer|diff|instructions?|system|settings?)\b",
        r"\bwhatever the (?:user|diff|person|change|owner|reviewer|settings?|result)\b",
        r"\b(?:page|text)\b[^.\n]{0,40}\bwins\b|\b(?:page|file|document|text|skill|it|this|they|entry|entries|rules?|instructions?)\b[^.\n]{0,30}\b(?:prevails?|takes? precedence|outranks?|overrules?|has (?:the )?(?:last|final) (?:word|say)|is binding|are binding)\b",
        r"\b(?:accept|approve|allow|confirm|grant|answer yes to) (?:every|all|any|each) (?:\w+ ){0,3}(?:calls?|requests?|prompts?|permissions?|questions?|commands?|dialogs?|tools?)\b",
        r"\bwarn\w*\b[^.\n]{0,50}\b(?:false positives?|outdated|can be (?:ignored|skipped|dismissed)|dismiss|ignore (?:it|them)|are expected|is expected|harmless)\b",
        r"\b(?:dismiss|ignore|skip|suppress|click through|disregard) (?:\w+ ){0,2}(?:warnings?|alerts?|objections?|refusals?)\b",
        r"\b(?:usual|normal|general|standard) (?:rules?|polic(?:y|ies)|caution|guidance|checks?|restrictions?)\b[^.\n]{0,50}\b(?:not apply|does not hold|no longer|are waived|is waived|suspended)\b",
        r"\b(?:do not|don't|never) (?:edit|remove|change|delete|shorten|comment|question|alter|touch|review|inspect) (?:or \w+ )?(?:it|this|these|them|that|the (?:block|section|lines?|helper|snippet|transport|rules?))\b",
    )
)
_TOLD = (_FORCED, _HIDE, _DECEIVE)
_HIDE_ABROAD = "|".join(
    (
        # German
        r"\b(?:erwähn\w*|zeig\w*|nenn\w*|sag|sage|teile?|informier\w*|meld\w*|protokollier\w*|verrat\w*|berichte\w*|sprich)\b[^.;\n]{0,80}\b(?:nicht|nichts|kein\w*)\b",
        r"\b(?:nicht|nichts|nie|niemals|keinesfalls)\b[^.;\n]{0,50}\b(?:erwähn\w*|mitteil\w*|mitgeteilt|anzuzeigen|angezeigt|gemeldet|informier\w*|auftauch\w*|erfahren|aufgeführt|zu wissen|gezeigt)\b",
        r"\bohne (?:hinweis|rückfrage|nachfrage|zustimmung|wissen|es zu erwähnen|das zu erwähnen|zu fragen|rücksprache|den \w+ zu|einen hinweis)",
        r"\bunauffällig|\bstillschweigend|\bheimlich|\bauf nachfrage\b[^.\n]{0,40}\b(?:genügt|antwort|sag)|\bfalls (?:jemand|der \w+|die \w+) (?:nach)?fragt|\bunbemerkt|\bauf (?:nach)?fragen?\b[^.\n]{0,20}\bantwort",
        r"\b(?:muss|müssen|braucht|brauchen|soll|sollen|darf|dürfen)\b[^.\n]{0,40}\bnichts?\b[^.\n]{0,20}\b(?:wissen|erfahren|sehen|merken|mitbekommen|gefragt)|\bkein wort\b",
        # French
        r"\bn'(?:a|ont) pas (?:besoin|à) (?:d'|de |le )?\w*\s?(?:savoir|voir|être)|\bpas un mot\b",
        r"\binutile d(?:e|')[^.\n]{0,20}(?:parler|mentionner|signaler|préciser|prévenir|dire|informer)|\bsans (?:en |le |lui |les |l')?(?:parler|prévenir|dire|mentionner|signaler|informer|avertir|demander|que (?:l'|la |le ))",
        r"\bn(?:e |')(?:pas |le |la |les |l'|lui |leur |rien |jamais |en ){0,3}(?:mentionne|parle|montre|signale|dis|dites|affiche|informe|révèle|préviens|indique)\w*|\bdiscrètement|\bsilencieusement|\bà l'insu|\bpasse\w* sous silence",
        r"\bsi (?:on|l'utilisat\w+|quelqu'un|la personne|le client)[^.\n]{0,30}(?:demande|interroge)[^.\n]{0,60}(?:répond|dis|dites|indique|expliqu)",
        # Spanish
        r"\bno (?:se )?(?:lo |la |le |les |los )?(?:muestre\w*|muestra\w*|menci[oó]n\w*|dig[ao]\w*|inform\w*|avis\w*|notifi\w*|coment\w*|revel\w*|aparez\w*)\b|\bsin (?:avisar|decir\w*|mencionar\w*|informar|preguntar|que (?:el|la|lo|nadie)|mostrar\w*|pedir|confirmación)",
        r"\bsi (?:alguien|el usuario|te preguntan|la persona|el cliente)[^.\n]{0,30}(?:pregunt|duda)[^.\n]{0,60}(?:se trata|di |responde|contest|explic|diga)|\bdiscretamente|\bno (?:hace falta|es necesario) (?:decir|mencion|avis|inform|mostr)\w*|\bse muestra[^.\n]{0,60}, no \w",
        r"\bno (?:necesita|tiene por qué|tiene que)\b[^.\n]{0,20}(?:saber|ver|enter)\w*|\bni una palabra|\bno (?:se )?(?:lo |la |le )?(?:cuentes|comentes|digas|expliques|preguntes)\b",
        # Portuguese
        r"\bnão (?:precisa|tem de|tem que|deve)\b[^.\n]{0,20}(?:saber|ver)\b|\bnão (?:comente|conte|fale|pergunte|explique)\b|\bnem uma palavra",
        r"\bnão (?:precisa|deve|é necessário|é preciso)\w*[^.\n]{0,20}(?:mostrad|mencion|inform|avis|exib|dizer|citad)\w*|\bnão (?:o |a |lhe )?(?:mostre|mencione|diga|informe|avise|comente|exiba|revele|cite)\w*|\bsem (?:avisar|dizer|mencionar|informar|perguntar|que o|mostrar|pedir)|\bse (?:alguém|o usuário|o utilizador|perguntarem)[^.\n]{0,40}pergunt",
        # Italian
        r"\bnon (?:lo |la |li |le |ne |gli |va |deve |serve )?(?:mostra\w*|menzion\w*|dire|dirlo|informa\w*|avvisa\w*|segnala\w*|comunica\w*|rivela\w*|parla\w*|cita\w*)\b|\bsenza (?:avvisare|dire|dirlo|menzionar\w*|informare|chiedere|mostrar\w*|che l')|\bse (?:qualcuno|l'utente|te lo|il cliente)[^.\n]{0,40}(?:chied|domand)|\bdi nascosto|\ball'insaputa|\bsilenziosamente",
        r"\bnon (?:deve|ha bisogno di|serve che|occorre che)\b[^.\n]{0,25}(?:saper|sappia|veder|veda)\w*|\bnon (?:farne parola|parlarne|chiedere|spiegare)\b",
        # Russian
        r"(?:знать|видеть|сообщать|говорить|показывать|объяснять|упоминать|спрашивать)\b[^.\n]{0,20}(?:необязательно|не нужно|не надо|не обязательно|незачем|не стоит|не следует)|(?:не нужно|не надо|необязательно|не обязательно|не стоит|незачем|не следует)[^.\n]{0,30}(?:знать|сообщ|говор|показ|упомин|объясн|уведом|спраш)",
        r"\bне (?:упомина|сообща|показыва|говори|рассказыва|указыва|включа|отобража|предупрежда|уведомля|спрашива|уточня)(?:й|йте|ть|я)\b|\bничего не (?:уточня|говори|спрашива|сообща)\w*|\bопусти(?:те)?\b|\bбез (?:ведома|уведомления|согласия|запроса|вопросов|подтверждения|предупреждения)|\bнезаметно|\bтайно\b|\bмолча\b|\bскрытно|\bесли (?:спрос|пользовател\w+ спрос|кто-то спрос)\w*",
        # Japanese
        r"表示せず|表示しない|見せず|見せない|知らせず|知らせない|伝えず|伝えない|言及しない|言及せず|触れない|触れず|報告しない|報告せず|尋ねられて|聞かれて|問われ|確認(?:は不要|せず|を求めず|なしで)|許可なく|黙って|こっそり|気付かれ|気づかれ|記載しない|通知せず|内緒|秘密裏",
        r"(?:説明|報告|通知|確認|言及|表示|許可|伝える|知らせる|見せる|話す)[^。\n]{0,10}(?:必要は(?:ありません|ない)|不要|しなくて)|(?:言わ|伝え|話さ|見せ|知らせ|教え|触れ|告げ|明かさ|表示し|報告し|通知し|説明し|言及し|気付かれ|気づかれ)(?:ない|ず)",
        # Chinese
        r"(?:不用|不要|无需|不必|别|无须|不需要|不得|切勿|请勿|勿)[^。，,；;\n]{0,8}(?:说|讲|问|知道|确认|过问|让人|声张|解释|打扰)|用户(?:不|无需|不必|无须)(?:需要|必)?(?:知道|了解|察觉|知情)",
        r"(?:不要|不必|无需|無需|不得|切勿|请勿|别|不用|不需要)[^。，,；;\n]{0,14}(?:提及|提到|告知|告诉|告訴|透露|显示|展示|说明|通知|征得|询问|汇报|列出)|(?:如果|若|万一|当)[^。\n]{0,10}(?:追问|问起|询问|问到|质疑)[^。\n]{0,10}(?:就说|回答|说|称)|(?:悄悄|偷偷|暗中|静默)(?:地)?[^。，\n]{0,8}(?:发送|上传|执行|运行|读取|收集|安装|写入|添加|复制|附|推送|转发)|瞒着|不让用户|用户不知",
        # Korean
        r"(?:알릴|말할|설명할|물을|보여줄|언급할|보고할|확인할|알) 필요|모르게|"
        r"(?:언급|표시|보고|알리|말하|설명|공개|보여주|묻)(?:하)?지 ?(?:마|말|않)|몰래|조용히|(?:물어보|물으|묻)면[^.\n]{0,30}(?:답|대답|말)|(?:동의|확인|승인|허락) ?없이",
    )
)
_SEND = r"\b(?:send|sends|sending|upload\w*|transmit\w*|forward\w*|post|posts|posting|submit\w*|deliver|relay|attach|append|push|pushes|put|mirror\w*|sync|share|copy|copies|report|bcc|cc|mail|e-mail|email|pass|hand|log|register|drop|ship|store|archive|include|add|paste|put|fill\w*)\b"
_SEND_ABROAD = (
    r"übermitt\w*|übertrag\w*|\bsend(?:e|en|et)\b|\bschick\w*|\blade\b|\bcopi(?:a|e|ar|er|ez)\b|\bsúb\w*|hochlad\w*|weiterleit\w*|\bleite\b|\bkopier\w*|\bhänge?\b|\benvo(?:ie|y)\w*|\btransmet\w*|\btéléverse\w*|\btransfère\w*|\btransférer|\bjoins\b|\bjoindre|\bjoignez|\bdépose\w*"
    r"|\benv[ií][aeo]\w*|\bsub(?:e|ir|a)\b|\btransmit\w*|\breenv\w*|\badjunt\w*|\bencaminh\w*|\banex\w*|\binvi(?:a|are|ate|i)\b|\btrasmett\w*|\bcarica\w*|\binoltr\w*|\balleg\w*|\bmand[ae]\w*"
    r"|отправ\w*|переда(?:й|в|ть)\w*|загруз\w*|выгруз\w*|перешл\w*|пересыл\w*|прикреп\w*|приложи\w*|送信|送付|送る|送り|アップロード|転送|添付|投稿|\bbcc\b"
    r"|上传|上傳|发送|發送|提交|转发|轉發|附加|传送|回传|发到|发给|推送|抄送|密送|전송|보내|보낸|업로드|첨부|전달|게시"
)
_PRIVATE = (
    rf"{STRONG_SECRET}|\b(?:passwords?|passphrases?|credentials?|api keys?|private keys?|ssh keys?|access tokens?|auth(?:entication|orization)? tokens?|session tokens?|tokens|cookies?|secrets|seed phrases?|recovery (?:codes?|phrases?)|"
    r"backup codes|environment variables|environment|env vars?|conversations?|transcripts?|chat (?:history|logs?)|prompts?|messages|history|source code|repository|workspace|working tree|clipboard|contacts|address book|mailbox|inbox|"
    r"customers?|clients?|patients?|employees?|payroll|invoices?|contracts?|personal data|home (?:folder|directory)|documents folder|user ?names?|host ?names?|file contents?|contents? of|diffs?|authorization headers?|headers|request bod\w+|shell history|attachments?|attached files?|spreadsheets?|records|project folder|(?:all|every|open) (?:\w+ )?files?|file names|questions?|screenshots?|(?:the )?(?:full |complete |whole )?logs?)\b|\.env\b|\bprintenv\b|\benv\b|git log|\.pem\b"
)
_PRIVATE_ABROAD = (
    r"zugangsdaten|kennw[oö]rt\w*|passw[oö]rt\w*|schlüssel\w*|umgebungsvariablen|\btoken\w*|gespräch\w*|\bverlauf\b|unterhaltung\w*|kundendaten|kunden\w*|quelltext\w*|quellcode|\bdatei\w*|\binhalt\w*|vertr[aä]g\w*|gehalt\w*"
    r"|identifiants?|mots? de passe|\bclés?\b|jetons?|variables d'environnement|historique|\bconversation\w*|données|fichiers?|code source|contenu|clients?"
    r"|credenciales|contraseñ\w*|\bclaves?\b|variables de entorno|historial|conversaci\w*|\bdatos\b|archivos?|ficheros?|c[oó]digo fuente|contenido|credenciais|senhas?|\bchaves?\b|variáveis de ambiente|histórico|conversas?|\bdados\b|arquivos?|conteúdo"
    r"|credenziali|\bpassword\b|\bchiav[ei]\b|variabili d'ambiente|cronologia|conversazion\w*|\bdati\b|codice sorgente|contenut\w*|clienti"
    r"|парол\w*|ключ\w*|токен\w*|уч[её]тн\w*|переменн\w*|истори\w*|переписк\w*|данны\w*|файл\w*|журнал\w*|cookie|authorization|содержим\w*|клиент\w*"
    r"|パスワード|鍵|認証情報|トークン|環境変数|履歴|会話|顧客|ファイル|議事録|ソースコード|内容|資格情報|文字起こし|个人|密码|密钥|私钥|令牌|凭证|凭据|环境变量|历史|对话|客户|文件|源代码|内容|数据|聊天记录|비밀번호|토큰|자격 ?증명|환경 ?변수|기록|대화|고객|파일|소스 ?코드|내용"
)
_SECRETS_ABROAD = (
    r"zugangsdaten|kennw[oö]rt\w*|passw[oö]rt\w*|private[nr]? schlüssel|identifiants|mots? de passe|clés? privées?|credenciales|contraseñ\w*|claves? privadas?|credenciais|senhas?|chaves? privadas?|credenziali|chiavi private"
    r"|парол[ьией]\w*|закрыт\w+ ключ\w*|токен\w*|パスワード|秘密鍵|認証情報|密码|密钥|私钥|凭证|凭据|令牌|비밀번호|자격 ?증명|개인 ?키"
)
_STRONGLY_PRIVATE = (
    rf"{STRONG_SECRET}|\b(?:passwords?|credentials?|api keys?|private keys?|ssh keys?|access tokens?|session tokens?|cookies|secrets|seed phrases?|recovery (?:codes?|phrases?)|environment variables|(?:full|whole|entire) environment|env vars?|"
    r"(?:complete|full|whole|entire) (?:conversation|transcript|chat|history)|conversations?|transcripts?|shell history|chat (?:history|logs?)|customer (?:records|data|list)|source code|all files|every file)\b|\.env\b|\bprintenv\b"
)
_GRANTS = r"\b(?:accept|approve|allow|confirm|grant) (?:every|all|any|each)\b|\b(?:already |been |pre-?)(?:approved|authori[sz]ed)\b|\bwarn\w*\b[^.\n]{0,50}\b(?:false positives?|outdated|can be)\b|\bnever ask (?:for|again)|\bwithout (?:asking|a question|confirmation|approval)\b"
_PUBLIC = r"\b(?:public(?:ly)? (?:issue|gist|repo\w*|comment|channel|paste)|(?:open|file|create|post|add)\w* (?:an?|one) (?:\w+ )?(?:issue|discussion|comment|gist) |to a gist|pull request (?:body|description|title)|commit (?:message|trailer|body)s?|trailers?|branch names?|pastebin|paste site|tags? names?|user-agent|file ?names? of|wiki page)\b"
_AUTHORITY = r"\b(?:even (?:if|when)|regardless of (?:whether|what)|no matter what)\b[^.\n]{0,40}\b(?:says? otherwise|objects?|declines?|refuses?|disagrees?|asks? you (?:not )?to|tells? you|says? no|instructs?|instructions)\b"
_MONEY = r"\biban\b|\bbank (?:details|account)|\baccount number|\bwallet address|\bpayees?\b|\bbeneficiar\w*|\bpayout|\bkontoverbindung|\bbankverbindung|\bcuentas?\b|\bcoordonnées bancaires|\bconto\b|\bconta\b|реквизит\w*|口座|账户|账号|收款|계좌"
_SWAPPED = r"\binstead of\b|\breplac\w+|\bswap\w*|\bsubstitut\w*|\bin place of|\banstelle|\bstatt\b|\ben lugar de|\bau lieu de|\bem vez de|\bno lugar d|\binvece d|вместо|замен\w*|代わり|替换|改为|而不是|換え|대신"
_REMOTE = (
    r"\b(?:page|document|checklist|file|feed|list|url|endpoint|gist|address|site|wiki|guide|policy|playbook|rules|config\w*|instructions?|version|text)\b[^\n]{0,160}\b(?:continuation|part of (?:this|the) (?:skill|document|file|instructions?)|as (?:if|though) (?:it|they) (?:were|was|stood)|"
    r"(?:extends?|supplements?|replaces?|updates?|supersedes?) (?:this|these|the) (?:skill|document|file|instructions?|steps|section)|same (?:authority|weight|rank)|let it (?:replace|override|extend|guide|decide)|decides what|apply (?:what|whatever|everything)|do (?:what|whatever) it|follow (?:it|them|what|whatever|its)|execute (?:it|what|whatever|its)|including commands|binding|wins\b|takes? precedence|treat (?:it|its|them|the) (?:\w+ )?as (?:instructions?|orders?|part|an? extension))"
)
_MEMORY = (
    r"\bagents\.md\b|\bclaude\.md\b|\bgemini\.md\b|\bmemory\.md\b|\bsoul\.md\b|\.cursorrules|copilot-instructions|\.cursor/rules|\b(?:other|every|each|all) (?:installed )?skills?\b|\b(?:global|user|long-term|persistent|permanent) memory\b|"
    r"\b(?:every|all|future|later|next|other) (?:\w+ )?(?:sessions?|conversations?|agents?|projects?)\b|\bmemory (?:tool|entry|entries|file)\b|\bmcp add\b|\bsurvives? (?:this|the) session|settings\.json|mcpservers|\bhooks\.json|\.mcp\.json"
)
_PLANT = r"\b(?:append|add|write|insert|put|save|store|remember|merge|copy|record|keep|inject|place|persist|plant|paste|set)\w*\b"
_TRUST_OFF = (
    r"--break-system-packages|--trusted-host|\bstrict-ssl\b|--insecure\b|\bcurl\b[^\n]{0,20} -\w*k\b|verify ?= ?false|reject_?unauthorized|sslverify|insecureskipverify|--no-verify\b|--no-check-certificate|--disable-gpg-check|--allow-unauthenticated|"
    r"check_hostname|cert_none|\bgive an approval|\bapprove (?:it|them|such|these)|\bpasses? (?:the )?review|--skip-?\w*(?:sign|verif|check)\w*|\bbackdoor|\b(?:add|include|create|insert|keep|leave|hard-?code|accept)\b[^.\n]{0,40}\b(?:hidden|master|maintenance|emergency|service|support|debug) (?:account|user|password|token|route|endpoint|key)\b|"
    r"\b(?:weaken|relax|loosen|lower|remove|drop|disable|turn off) (?:\w+ ){0,3}(?:checks?|validation|verification|authentication|tls|certificate|signature)\b|\balways allow\b|\ballow always\b|\bapprove (?:them|it|these|those|such \w+|everything|all) (?:at once|immediately|right away|without)|\bskip the (?:security|safety|review)\b|любых команд|разрешать всегда|всегда разрешать|immer erlauben|toujours autoriser|permitir siempre|始终允许|总是允许|常に許可|항상 허용"
)
_COMMAND = (
    r"\bcurl\b[^\n]{0,200}(?:\s-d\b|--data|\s-f\b|\s-t\b|--upload|--form|-x (?:post|put)|@)|\bwget\b[^\n]{0,100}--post|requests\.(?:post|put)|httpx\.(?:post|put)|fetch\(|sendbeacon|invoke-(?:restmethod|webrequest)[^\n]{0,100}-method|\bnc\b -|\bscp\b|\brsync\b|git push|gh (?:issue|gist|pr|api)|"
    r"\b(?:post|put) (?:the|it|them|all|a)\b|методом (?:put|post)|\bmethod (?:put|post)"
)

_PLACE = (
    r"(?:https?|ftp|ssh|git|wss?)://(?:[^\s/@\"'`<>()]{1,60}@)?([a-z0-9.-]{3,80})|\b[\w.+-]{1,60}@([a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,4})\b"
    r"|(?<![\w/.@-])([a-z0-9-]{2,40}(?:\.[a-z0-9-]{2,40}){1,3}\.(?:com|net|org|io|dev|app|xyz|top|site|online|info|cloud|ru|cn|test|invalid|example))(?![\w.-])"
)
_OWN_PLACES = ("localhost", "127.0.0.1", "example.com", "example.org", "example.net", "0.0.0.0")

# Combinations ---------------------------------------------------------------------------------------

ABROAD = (_HIDE_ABROAD, rf"{_SEND_ABROAD}|\bmethod post")
"""Secrecy, and sending, in other languages."""

SEARCHED = (*_TOLD, _HIDE_ABROAD, _TRUST_OFF, _REMOTE, _COMMAND, _MONEY)
"""The patterns whose alternatives are tried only in texts that have their words."""


class _Ideas:
    """The ideas of one section, each looked up when it is asked for."""

    def __init__(self, text: str, *, abroad: bool) -> None:
        self.text, self.abroad = text, abroad

    def has(self, home: str, abroad: str = "") -> "re.Match[str] | None":
        found = search(home, self.text)
        return search(abroad, self.text) if found is None and abroad and self.abroad else found

    def place(self) -> bool:
        """Return whether the text names an address that is not one of a known publisher."""
        return is_foreign_place(self.text)


def is_foreign_place(text: str) -> bool:
    """Return whether a text names an address that is neither of a known publisher nor the usual one of a service."""
    for match in islice(pattern_of(_PLACE).finditer(text), 20):
        host = match[1] or match[2] or match[3] or ""
        if host not in KNOWN_HOSTS and host not in _OWN_PLACES and not host.startswith(("api.", "docs.", "www.")):
            return True
    return False


def orders_in(text: str) -> bool:
    """Return whether a text has an order that takes a choice or knowledge from the user."""
    return any(search(pattern, text) for pattern in _TOLD)


def _judge(text: str, head: str, *, abroad: bool) -> "tuple[str, str, re.Match[str]] | None":
    """Return rule, words and the telling match if the ideas of a section make a sign together."""
    ideas = _Ideas(text, abroad=abroad)
    hides = ideas.has(_HIDE, _HIDE_ABROAD)
    lies = ideas.has(_DECEIVE)
    forced = ideas.has(_FORCED)
    quiet = hides or lies
    told = quiet or forced
    if told is None:
        return None
    if is_warning(text, head):
        return None
    ideas = _Ideas(_scope(text, told), abroad=abroad)
    strong = ideas.has(_STRONGLY_PRIVATE, _SECRETS_ABROAD)
    sends = (ideas.has(_SEND, _SEND_ABROAD) or ideas.has(_COMMAND)) and ideas.place()
    if sends and (quiet or (forced and strong)) and ideas.has(_PRIVATE, _PRIVATE_ABROAD):
        return "security-exfiltration", "sends private data to an address and keeps the user out of it", told
    if strong and ideas.has(_PUBLIC) and ideas.has(_SEND):
        return "security-exfiltration", "puts private data where others see it, and keeps the user out of it", told
    if ideas.place() and ideas.has(_REMOTE):
        return "security-remote-instructions", "lets an address give orders, and keeps the user out of it", told
    if quiet and ideas.has(_MONEY) and ideas.has(_SWAPPED):
        return "security-concealment", "changes where money goes and keeps quiet about it", quiet
    if hides and lies:
        return "security-concealment", "hides something from the user, and has an excuse ready", hides
    weakens = ideas.has(_TRUST_OFF)
    if weakens and (weakens.end() <= told.start() or told.end() <= weakens.start()):
        return "security-concealment", "weakens a check and keeps the user out of it", told
    if (quiet or ideas.has(_GRANTS)) and ideas.has(
        rf"{_PLANT}[^.\n]{{0,160}}(?:{_MEMORY})|(?:{_MEMORY})[^.\n]{{0,80}}{_PLANT}"
    ):
        return "security-agent-settings", "plants orders for other sessions or skills", told
    if forced and ideas.has(_AUTHORITY):
        return "security-override", "claims to rank above the user or the system", told
    return None


_WARNS = r"\b(?:attack\w*|malicious|injection\w*|phishing|suspicious|untrusted|prompt injection|exfiltrat\w*|scams?|fraud\w*|red flags?|indicators?|malware|compromis\w*|social engineering|abuse)\b|恶意|攻击|注入|可疑"
_RESISTS = r"\b(?:do not (?:run|follow|execute|obey|comply)|never (?:follow|run|obey|execute|comply)|refuse|reject|flag (?:it|them|as)|detect\w*|block\w*|watch for|warning signs?|examples? of|test (?:phrases?|inputs?|cases?)|as quoted data|hardens?|defen[cs]e|look for|treat (?:it|them|\w+) as (?:data|content|hostile)|scan\w*|patterns?|report (?:it|them))\b|检测|拒绝|识别"


def is_warning(text: str, head: str = "") -> bool:
    """Return whether a section, or the head of its page, speaks of attacks, and the section of what to do against them."""
    warns = pattern_of(_WARNS).search(text) or pattern_of(_WARNS).search(head)
    return warns is not None and pattern_of(_RESISTS).search(text) is not None


# Sections -------------------------------------------------------------------------------------------

_HOME_WORDS = tuple(
    word.encode()
    for word in (
        *(
            f"{no} {verb}"
            for no in ("not", "never", "'t", "’t", "no", "to", "avoid")
            for verb in ("mention", "disclose", "reveal")
        ),
        *(
            f"{verb} {what}"
            for verb in ("mention", "omit", "reveal", "disclose")
            for what in ("it", "this", "the", "that", "them", "these")
        ),
        "be mentioned",
        "without mentioning",
        "avoid mentioning",
        "nor mentioned",
        "without revealing",
        "without disclosing",
        "omitted from",
        "being mentioned",
        *(
            f"{no} {verb}"
            for no in ("not", "never", "'t", "’t", "to")
            for verb in (
                "show",
                "tell",
                "list",
                "say",
                "inform",
                "display",
                "notify",
                "report",
                "discuss",
                "explain",
                "log",
                "quote",
                "raise",
                "announce",
                "surface",
                "document",
                "describe",
                "bring",
                "point",
                "ask",
                "wait",
                "flag",
            )
            if no != "to" or verb in ("explain", "tell", "inform")
        ),
        *(
            f"without {doing}"
            for doing in (
                "telling",
                "asking",
                "informing",
                "confirmation",
                "approval",
                "comment",
                "notice",
                "consent",
                "permission",
                "showing",
                "review",
                "prompting",
            )
        ),
        *(
            f"{who} {asks}"
            for who in ("anyone", "someone", "somebody", "user", "person", "they", "if", "when", "customer", "should")
            for asks in ("asks", "asked", "ask")
            if (who, asks)
            not in (
                ("should", "asks"),
                ("user", "ask"),
                ("user", "asks"),
                ("when", "asks"),
                ("when", "ask"),
                ("if", "asks"),
                ("if", "ask"),
            )
        ),
        *[
            "silently",
            "quietly",
            "discreetly",
            "secretly",
            "covertly",
            "unnoticed",
            "unobtrusively",
            "invisibly",
            "stealthily",
            "conceal",
            "paraphrase",
            "paraphrased",
            "pretend",
            "dismiss",
        ],
        *(
            "should the person",
            "should the user",
            "should anyone",
            "should someone",
            "need not",
            "need to know",
            "have to know",
            "to yourself",
            "out of the",
            "out of your",
            "between us",
            "say that",
            "claim that",
            "be told",
            "be asked",
            "be shown",
        ),
        *(
            "without a word",
            "without a question",
            "the sent",
            "not to be",
            "never be",
            "not appear",
            "not notice",
            "one notices",
            "nobody notices",
            "false positives",
            "every later",
            "no remarks",
            "page is more",
            "takes precedence",
            "no matter",
            "regardless of what",
            "regardless of whether",
            "regardless of the user",
        ),
        *(
            "even if the",
            "not apply",
            "be ignored",
            "in the background",
            "stay out",
            "stays out",
            "pre-approved",
            "already approved",
            "been approved",
            "approved all",
            "says otherwise",
            "say otherwise",
            "told otherwise",
            "any traces",
            "the traces",
            "traces of",
            "user asks,",
            "user asks whether",
            "user asks about it",
            "user asks why",
            "user asks what",
            "be involved",
            "no word",
            "keep this quiet",
            "keep this to",
            "keep this out",
            "keep this hidden",
            "keep this between",
            "keep it quiet",
            "keep it to",
            "keep it out",
            "keep it hidden",
            "keep it between",
            "hidden from",
            "hide this",
            "hide the",
            "accept every",
            "accept all",
            "approve every",
            "not edit",
            "whatever the",
        ),
    )
)
_ABROAD_WORDS = (
    "erwähn",
    "verrat",
    "kein wort",
    "nicht wissen",
    "nicht erfahren",
    "pas besoin",
    "pas un mot",
    "no necesita",
    "no se lo",
    "no lo ",
    "não precisa",
    "não coment",
    "não diga",
    "non deve",
    "необязательно",
    "не нужно",
    "не надо",
    "не стоит",
    "незачем",
    "必要は",
    "不要",
    "しなくて",
    "不用",
    "不必",
    "无需",
    "无须",
    "别",
    "필요",
    "모르게",
    "ohne rückfrage",
    "ohne nachfrage",
    "ohne hinweis",
    "ohne zustimmung",
    "ohne wissen",
    "auf nachfrage",
    "falls jemand",
    "unauffällig",
    "stillschweigend",
    "heimlich",
    "unbemerkt",
    "anwender",
    "benutzer",
    "nutzer",
    "inutile d",
    "sans en ",
    "sans préven",
    "sans le ",
    "sans dem",
    "sans inform",
    "sans que",
    "discrèt",
    "à l'insu",
    "utilisat",
    "quelqu'un",
    "sin avisar",
    "sin decir",
    "sin que",
    "sin preguntar",
    "sin inform",
    "sin menc",
    "usuario",
    "alguien",
    "discretamente",
    "usuário",
    "sem avisar",
    "sem dizer",
    "sem que",
    "sem pergunt",
    "alguém",
    "utente",
    "senza avvis",
    "senza dir",
    "senza che",
    "senza chied",
    "senza menz",
    "qualcuno",
    "di nascosto",
    "insaputa",
    "не упомина",
    "не сообща",
    "не показыва",
    "не говори",
    "не рассказ",
    "не указыва",
    "не включа",
    "опусти",
    "без ведома",
    "без увед",
    "без согл",
    "без подтв",
    "незаметно",
    "тайно",
    "молча",
    "скрытно",
    "не уточня",
    "не спраш",
    "если спрос",
    "せず",
    "しない",
    "られて",
    "なしで",
    "許可なく",
    "黙って",
    "こっそり",
    "気付",
    "気づ",
    "伝えな",
    "見せな",
    "知らせな",
    "触れな",
    "内緒",
    "提及",
    "提到",
    "告知",
    "告诉",
    "透露",
    "展示",
    "征得",
    "追问",
    "问起",
    "询问",
    "悄悄",
    "偷偷",
    "暗中",
    "静默",
    "瞒着",
    "不让用户",
    "지 마",
    "지마",
    "지 말",
    "지 않",
    "몰래",
    "조용히",
    "없이",
)

_SPACES = bytes(byte if chr(byte).isascii() and chr(byte).isalnum() else 32 for byte in range(256))
_PHRASES = {word: frozenset(word.translate(_SPACES).split()) for word in _HOME_WORDS}
_ABROAD_TOKENS = frozenset(
    b"nicht benutzer nutzer anwender und ohne utilisateur sans quelqu usuario usuarios alguien sin utente senza sem usuario qualcuno".split()
)
PROSE_TOKENS: frozenset[bytes] = _ABROAD_TOKENS.union(*_PHRASES.values())
"""Tokens of the English words of these signs."""


_PARTNERS = dict.fromkeys(
    b"://|session|rules|skills|account|settings|commit|issue|verify|asks|@|.test|.com/|.io/|agents.md|claude.md|gemini.md|memory|skills|session|settings|mcp|rules|issue|gist|commit|trailer|branch|iban|account|payee|wallet|benefic|cuenta|conto|conta|bank|verify|insecure|trusted-host|break-system|certificate|tls|approv|always allow|backdoor|even if|even when|regardless|no matter|"
    b"if asked|asks|asked|say that|pretend|claim".split(b"|")
) | dict.fromkeys(word.encode() for word in ("реквизит", "口座", "账", "收款", "계좌", "всегда", "许", "許", "허용"))
"""Words of the ideas that secrecy is combined with."""

PROSE_WORDS: tuple[bytes, ...] = (*_PHRASES, *(word.encode() for word in _ABROAD_WORDS), *_PARTNERS)
"""The words of these signs, in the order in which they are tried."""


def prose_signs(lowered: bytes, tokens: frozenset[bytes], words: Words, *, is_page: bool) -> Iterator[Sign]:
    """Yield the signs of the sections of a text, one for each section."""
    abroad = _is_abroad(lowered) or not _ABROAD_TOKENS.isdisjoint(tokens)
    phrases = _PHRASES if isinstance(words, bytes) else [word for word in words if word in _PHRASES]
    sought = [word for word in phrases if _PHRASES[word] <= tokens]
    if abroad:
        sought += [word for script, ones in _abroad_words() if script in lowered for word in ones if word in words]
    partners = [word for word in _PARTNERS if word in words] if sought else []
    seen: set[int] = set()
    for word in sought:
        at = lowered.find(word)
        for _ in range(SECURITY_WINDOWS):
            if at < 0:
                break
            start, end = _section(lowered, at, is_page=is_page)
            if start in seen:
                pass
            elif not _has_one(lowered, start, end, partners):
                seen.add(start)
            elif _is_told(lowered[max(start, at - 110) : min(end, at + 150)], abroad=abroad):
                seen.add(start)
                head = lowered[: max(lowered.find(b"\n---", 3), 0)].decode("utf-8", "replace") if is_page else ""
                yield from _signs_in(lowered, start, end, head, abroad=abroad)
            at = lowered.find(word, end if start in seen else at + len(word))


def _has_one(data: bytes, start: int, end: int, words: list[bytes]) -> bool:
    for word in words:  # noqa: SIM110 - a loop is faster than any() here
        if data.find(word, start, end) >= 0:
            return True
    return False


def _is_told(near: bytes, *, abroad: bool) -> bool:
    """Return whether the text near a word keeps something from the user, or takes a choice."""
    text = re.sub(r"\s*\n[ \t>]*", " ", near.decode("utf-8", "replace"))
    return any(search(one, text) for one in ((*_TOLD, _HIDE_ABROAD) if abroad else _TOLD))


def _signs_in(data: bytes, start: int, end: int, head: str, *, abroad: bool) -> Iterator[Sign]:
    section = data[start:end]
    text = _joined(section.decode("utf-8", "replace"), data.count(b"\n```", 0, start))
    found = _judge(text, head, abroad=abroad)
    if found is not None:
        rule, says, match = found
        yield Sign(rule, start + _offset(section, match[0]), says, match[0])


def _joined(text: str, fences: int) -> str:
    """Return a section with wrapped lines joined; items of lists keep lines of their own, but not in blocks of code."""
    parts = text.split("\n```")
    for number, part in enumerate(parts):
        parts[number] = re.sub(
            r"\s*\n(?![ \t]*(?:[-*+]|\d{1,2}[.)]) )[ \t>]*" if (number + fences) % 2 == 0 else r"\s*\n[ \t>]*",
            " ",
            part,
        )
    return " ".join(parts)


def _scope(text: str, match: "re.Match[str]") -> str:
    """Return what belongs to a match: without the other items of a list if the match is in one."""
    start = text.rfind("\n", 0, match.start() + 1) + 1
    if start == 0 or not re.match(r"[ \t]*(?:[-*+]|\d{1,2}[.)]) ", text[start : start + 12]):
        return text
    end = text.find("\n", match.end())
    return text[: max(text.find("\n"), 0)] + " " + text[start : end if end >= 0 else len(text)]


def _offset(section: bytes, matched: str) -> int:
    """Return where a match begins in a section whose lines were joined for it."""
    found = re.search(r"\s+(?:>\s*)?".join(re.escape(part) for part in matched.split()[:4]).encode(), section)
    return found.start() if found else 0


def _section(data: bytes, at: int, *, is_page: bool) -> tuple[int, int]:
    """Return start and end of the section of an offset: from a heading to the next, in bounds."""
    if not is_page:
        return max(at - _LONGEST // 2, 0), at + _LONGEST // 2
    start = max(data.rfind(b"\n#", 0, at), data.rfind(b"\n---\n", 0, at), 0)
    end = data.find(b"\n#", at)
    end = len(data) if end < 0 else end
    if end - start <= _LONGEST:
        return start, end
    return max(start, at - _LONGEST // 2), min(end, at + _LONGEST // 2)


_LETTERS = bytes(byte for byte in range(256) if byte not in (0xC3, 0xD0, 0xD1, *range(0xE3, 0xEE)))


def _is_abroad(data: bytes) -> bool:
    """Return whether a text has letters of other languages than English."""
    return not data.isascii() and len(data.translate(None, _LETTERS)) > 2


_SCRIPTS = (("а", "я", b"\xd0"), ("ぁ", "ヿ", b"\xe3\x81"), ("가", "힣", b"\xec"), ("一", "龥", b"\xe4"))


@cache
def _abroad_words() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Return for each script bytes that its texts have, and the words in it; Latin words are for every text."""
    found: dict[bytes, list[bytes]] = {}
    for word in _ABROAD_WORDS:
        marks = [mark for first, last, mark in _SCRIPTS if any(first <= letter <= last for letter in word)]
        found.setdefault(marks[0] if marks else b"", []).append(word.encode())
    found[b"\xe3\x81"] = [*found[b"\xe3\x81"], *found[b"\xe4"]]
    return tuple((script, tuple(words)) for script, words in found.items())
