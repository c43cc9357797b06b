"""Judge prose by its intent where no word of secrecy gives it away: who gives the orders, what leaves, who agreed.

A section is looked at only if it has a cheap sign: an address, a word for a recovery phrase, or a phrase that explains
something away. Each intent needs several ideas in one place, in any of ten languages, and none that forbids it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from skillshelf.core.limits import SECURITY_WINDOWS
from skillshelf.core.records import NamedTuple
from skillshelf.lint.security_prose import ABROAD, Sign, is_foreign_place, is_warning
from skillshelf.lint.security_search import may_match, search
from skillshelf.lint.security_signals import pattern_of
from skillshelf.lint.security_words import Words

__all__ = ["INTENT_TOKENS", "INTENT_WORDS", "SEARCHED", "hides_orders", "intent_signs"]

_LONGEST = 2400

# Ideas ----------------------------------------------------------------------------------------------

_FORBIDS = r"\b(?:never|do not|don't|don’t|must not|should not|cannot|nobody should|no skill should|refuse|nie|niemals|nicht|keine?|jamais|ne|nunca|jamás|não|non|mai)\b|\bno (?:le |lo |se )?(?:pid|solicit|compart|ingres|introdu)|не |никогда|不要|不得|切勿|请勿|禁止|绝不|勿|ない(?:で|こと|よう)|ません|禁止|지 마|지 않|절대"

_CONVERSATION = (
    r"\b(?:conversations?|transcript|dialogue|chat (?:history|log)|(?:last|previous|user's|users'|recent|all) (?:\w+ )?(?:messages|prompts|questions|answers)|(?:open|attached|current|local) (?:documents?|files?)|contents? of|(?:file|document|project) contents?|(?:customer|client|patient|account|crm|contact|employee) (?:records?|data|notes?|connection|list|details)|date of birth|phone|mail address|what the user|user's (?:\w+ )?(?:question|request|name|text|input|words|address|draft|mail|paragraph)|the (?:last|current) (?:question|message|request)|environment|working directory|context is)\b"
    r"|gespräch\w*|\bverlauf\b|unterhaltung|geöffnete\w* datei|kundendaten|\bconversation\b|messages de l|fichiers ouverts|\bconversaci\w*|mensajes d|archivos abiertos|\bconversa\b|mensagens d|ficheiros abertos|conversazion\w*|messaggi d|file aperti|переписк\w*|разговор\w*|сообщени\w*|открыт\w+ файл|对话|聊天|打开的文件|客户|会話|やり取り|開いている|顧客|대화|열린 파일|고객"
)
_ENCODED = r"\burl-?(?:en)?coded|percent-?encoded|\bbase ?(?:64|32)\w*|\bhex\b|hexadecimal|\bgzip\w*|\bencod\w+|kodiert|\bencodée?s?\b|codificad\w+|codificat\w+|кодир\w+|编码|エンコード|인코딩"
_CARRIER = r"https?://[^\s)\"'<>]{3,120}[?&/#][\w\[\]%-]{0,30}=(?:[<{$\[%]|[a-z_]{1,24}\b|\s|[\"'`)])|https?://[a-z0-9.-]{3,80}/[^\s)\"']{0,60}(?:<[a-z _-]{2,40}>|\{\{?[a-z _-]{2,40}\}|\$\{?[a-z_]{2,40})"
_EACH_ANSWER = r"!\[|\b(?:each|every|all|any) (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|messages?|links?|customer|contact|recipient|record|document)\b|\bper (?:recipient|customer|contact|reply|answer)\b|\b(?:end|close|finish|begin|open|start) (?:each|every|all)|jede\w* (?:antwort|nachricht)|chaque (?:réponse|message)|cada (?:respuesta|mensaje|resposta|mensagem)|ogni (?:risposta|messaggio)|кажд\w+ (?:ответ|сообщени)|每(?:次|个|条)(?:回答|回复|答复)|(?:毎回|各)(?:の)?(?:回答|返信)|모든 (?:답변|응답)"

_FETCH = (
    r"\b(?:open|fetch|get|load|read|visit|query|pull|retrieve|download|request|call|poll|consult|check|look (?:up|at)|curl|ask|lives? at|published at|kept at|found at|served (?:at|from)|maintained at)\b"
    r"|\b(?:rufe?|lade|lies|öffne|hole?|frage?)\b|\b(?:lis|lire|ouvre|charge|récupère|consulte|télécharge|va)\w*|\b(?:abre|lee|carga|consulta|descarga|visita|obtén|leia|abra|carregue|baixe|obtenha)\b|\b(?:apri|leggi|carica|scarica|consulta)\b|открой|загрузи|прочитай|получи|скачай|запроси|访问|读取|打开|获取|下载|加载|拉取|開|読み|取得|アクセス|참조|열|읽|가져|받"
)
_STANDING = (
    r"\b(?:same|equal) (?:standing|authority|weight|rank|force|status|validity|priority|footing)\b|\b(?:part|extension|continuation) of (?:this|these|the) (?:page|skill|file|document|instructions?|lines|text|prompt)\b|\bas (?:if|though) (?:it|they|its \w+) (?:were|was|had been|stood)\b(?: \w+){0,3} (?:here|part|this|in this|written|printed)|\b(?:count|counts|apply|applies|hold|holds|valid|bind|binds) (?:as much as|like|just as|in the same way as) (?:this|these)\b"
    r"|\b(?:sheet|page|file|list|feed|text|answer|document|response|remote|server|it|they|former|latter|online (?:version|copy))\b (?:is|are) (?:right|binding|authoritative)\b|\b(?:it|they|sheet|remote|online (?:version|copy)|server|feed)\b (?:\w+ ){0,2}(?:wins?|prevails?|takes? precedence|goes first|overrules?)\b"
    r"|gilt (?:wie|genauso)|gleich(?:en|e|er)? (?:rang|gewicht|gültigkeit)|teil dieser (?:seite|datei|anleitung)|hat vorrang|geht vor\b|fait partie (?:de cette|du)|prime sur|même (?:valeur|autorité|rang|poids)|forma parte de est|mismo (?:valor|rango|peso)|misma (?:validez|autoridad)|tiene prioridad|prevalece|faz parte dest|mesmo (?:valor|peso)|mesma (?:validade|autoridade)|fa parte di questa|stesso (?:valore|peso|rango)|stessa (?:validità|autorità)|ha la precedenza|имеет ту же силу|наравне с|является частью (?:этой|этого)|имеет приоритет|同等效力|同样(?:的)?(?:效力|有效)|视为本(?:文|技能|页)|优先于|以其为准|以(?:该|此)\S{0,6}为准|同じ効力|同等(?:の|に)|この(?:ページ|ファイル|スキル)の一部|優先(?:され|する|します)|같은 효력|동일한 효력|이 (?:문서|파일|스킬)의 일부|우선"
)
_OBEYS = (
    r"\b(?:carry|carries|carried) (?:it|them|these|those|all|each|every\w*|the \w+) out\b|\bcarry out (?:\w+ ){0,3}(?:steps?|tasks?|lines?|commands?|orders?|instructions?|in (?:the )?(?:given )?order)|\b(?:act (?:up)?on|obey|comply with|execute|follow|perform|do|complete|apply) (?:every|each|all|any|whatever|everything|the) (?:\w+ ){0,2}(?:instructions?|commands?|orders?|steps?|lines?|tasks?|directives?|it (?:says|lists|contains|asks)|they (?:say|contain)|you find)\b(?: (?:in|from|on|there|it|you find|listed|found))|\bwork through (?:the |all |its |every )?(?:\w+ )?(?:tasks?|steps?|items?|list|lines?|commands?)\b[^.\n]{0,30}\b(?:in|on|from) (?:it|there|them|the)|\bcommands? included|\bfollow (?:it|them|what|whatever|that|its (?:instructions|steps|contents?|orders))\b|\b(?:do|proceed|act) (?:exactly )?(?:what|as|whatever) (?:it|they|the \w+) (?:says?|tells?|asks?|lists?|describes?|orders?)|\bact accordingly\b|\b(?:perform|apply|do|complete|go through|process|handle)\b[^.\n]{0,40}\b(?:described|listed|given|named|indicated|shown|written|found) (?:there|in it|on it)\b|\bwhatever (?:they|it) (?:are|is|say|says)\b|\bgo through it\b|\bapplique\w* (?:les|ces|toutes)|\barbeite\b[^.\n]{0,40}\bab\b|\bbefolg\w+|\b(?:aplica|cumple|aplique|cumpra) (?:los|las|lo|os|as|cada)|\bapplica (?:i|le|gli)|\btake (?:your|the) (?:orders|tasks|next steps|instructions) from|\bincluding (?:any |all |shell )?commands|"
    r"\b(?:shell|terminal|command)(?:-line)? (?:lines?|commands?)\b[^.\n]{0,40}\b(?:are|is|get) (?:executed|run|carried out)|\b(?:execute|run) (?:them|it|these|whatever it|what it|the (?:returned|received|listed|given) (?:commands?|lines?|steps?))\b"
    r"|befehle darin|führe?(?:st)? (?:\w+ ){0,4}aus\b|exécute\w* (?:les|toutes|chaque|ce)|suis (?:les|ses|toutes)|ejecut\w+ (?:los|las|lo|cada|todo)|sigue (?:las|sus|todas)|execute (?:os|as|cada|todos|o que)|siga (?:as|os|todas)|esegui (?:i|le|gli|ogni|tutti|ciò)|segui (?:le|i|tutte)|выполн\w+ (?:все|кажд|их|команд|указан)|следуй|照做|(?:命令|指令|步骤)[^。\n]{0,10}(?:执行|运行)|执行(?:其中|里面|所有|返回)|(?:コマンド|指示|手順)[^。\n]{0,12}(?:実行|従)|(?:명령|지시)[^.\n]{0,12}(?:실행|따르|수행)"
)
_AT_EACH = r"\b(?:each|every|any) (?:new )?(?:session|run|start|time|task|conversation|morning|request|use|day)|\b(?:at|on) (?:each |the )?start\b|\bstart of\b|\bwhenever\b|\bbefore (?:each|every|any|you (?:start|go on|begin|answer)|anything|the first|all)\b|\bregularly\b|\bdaily\b|\balways\b|zu beginn|jede[rsmn]? (?:sitzung|lauf|start|aufgabe)|vor jede|chaque (?:session|fois|démarrage)|au début|cada (?:sesión|vez|inicio|sessão)|al (?:inicio|comienzo|principio)|no início|ogni (?:sessione|volta|avvio)|all'inizio|кажд\w+ (?:раз|сесси|запуск)|в начале|每次|开始(?:时|前)|启动时|毎回|開始時|最初に|매번|시작할 때|시작 시"

_PHRASE = r"\b(?:seed|recovery|backup|secret) (?:phrase|words)|\b(?:12|24|twelve|twenty-four)(?: or (?:24|twenty-four))? (?:\w+ )?words\b|\bmnemonic|wiederherstellungs(?:wörter|phrase|sequenz|satz|code)\w*|seed-?phrase|sicherungswörter|mots de (?:récupération|passe de récupération|sauvegarde)|phrase (?:de récupération|secrète|mnémonique|de passe du portefeuille)|clé privée|(?:palabras|frase) (?:de (?:recuperación|respaldo)|semilla|secreta)|clave privada|(?:palavras|frase) (?:de recuperação|de segurança|semente)|frase-semente|chave privada|(?:parole|frase) (?:di recupero|segreta|seed)|chiave privata|(?:сид|seed)-?\s?фраз\w*|фраз\w+ восстановлени\w*|секретн\w+ фраз\w*|приватн\w+ ключ\w*|助记词|助憶詞|恢复(?:短语|词)|私钥|(?:リカバリー|シード|復元|復旧)(?:フレーズ|ワード)|秘密鍵|(?:복구|시드) ?(?:구문|문구|단어)|니모닉|개인 ?키"
_LOGIN = r"\b(?:passwords?|passcode|pin|one-time (?:code|password)s?|(?:sms|verification|security|login|authenticator) codes?|code (?:from|in) (?:the|their) (?:text|sms|app|mail)|tan|cvv|card number)\b|passwort|kennwort|\btan\b|mot de passe|code (?:sms|reçu)|contraseña|código (?:del?|que|sms)|\bsenha\b|código (?:do|de) sms|\bpassword\b|codice (?:sms|ricevuto)|парол\w*|код\w* из (?:смс|sms)|密码|验证码|パスワード|認証コード|비밀번호|인증 ?(?:번호|코드)"
_ASK = r"\b(?:ask|request|prompt|have the user|let the user|get the user|tell the user to|invite)\b|\b(?:bitte|frage?|fordere|lass)\b|\bdemand(?:e|ez|er)\b|\b(?:pide|pida|pedir|solicita|solicite|peça|peca|solicitar|chiedi|chiedere|richiedi)\b|попроси\w*|запроси\w*|спроси\w*|请用户|让用户|要求用户|向用户|询问|索要|請用戶|ユーザーに|利用者に|사용자에게|요청"
_HANDS_ON = r"\b(?:send|enter|submit|post|store|save|put|record|type|upload|forward|fill|register|pass|keep|note)\w*\b|\btrage?\b|\bsende?\b|\bschick\w*|\bgib\b|speicher\w*|übermittle|enregistre|envoie|saisis|transmets|dépose|guárdal\w+|guarda|envía\w*|introduce|ingresa|guarde|envie|insira|registe|inviala|invia\w*|inserisci\w*|salva\w*|введи|отправ\w+|сохрани|передай|提交|发送|填写|输入|保存|上传|送信|入力|保存|제출|전송|입력|보내"

_DESCRIBED = (
    r"\b(?:value|file|text|token|string|line|entry|key|code|secret|record|login|logins|sign-in)\b[^.\n]{0,60}\b(?:that|which|where|in which|wherein|whose|as)\b[^.\n]{0,40}\b(?:command.line|cli\b|client|package manager|git\b|browser|tool|kubernetes|docker|cloud|ssh|terminal|mail program|agent|person uses|user uses|system)\b[^.\n]{0,40}\b(?:keeps?|stores?|remembers?|saves?|caches?|holds?|uses? (?:for|to)|logs? in|signs? in)\b"
    r"|\b(?:command.line|cli|client|package manager|git|browser|cloud tool|docker|kubernetes)\b[^.\n]{0,60}\b(?:keeps?|stores?|remembers?|saves?|caches?|can remember)\b[^.\n]{0,40}\b(?:logins?|sign-ins?|sessions?|tokens?|access|identity|servers?)\b|\bkey that the (?:person|user|owner) uses|\b(?:begin|between the begin) and end (?:lines|markers)|\bleading dot\b|\bstarts? with a dot\b|\bdot-?files? in (?:the|their) home"
)

_HIDES = (
    r"\b(?:has|have|had) no place in\b|\b(?:does|do) not belong (?:in|on|to)\b|\b(?:is|are) (?:not|never) (?:a )?(?:part of|in|raised|shown|listed|mentioned|named|reported|included)\b|\b(?:stays?|remains?|kept|left|leave it|leave them|keep it|keep them|leave \w+ \w+) out of\b|\b(?:is|are) left (?:blank|empty|off|out)\b|\bwithout (?:a )?(?:trace|mention|comment)\b|\b(?:needs?|requires?|gets?|deserves?) no (?:mention|comment|explanation|line|word)|\b(?:do|does|should|must) not (?:show|turn|come) up\b|\bnot in the (?:comments?|verdict|summary|report|recap|answer|list)\b|\bnothing to explain\b|\bunread\b|\bno line (?:for|about)|\bomit(?:s|ted)? (?:it|this|them|from)|\b(?:show|shown|display|render|list|print)\w* (?:\w+ |`\w+` ){0,3}as [`\"']|\bfrom the (?:recap|summary|overview|statement)\b"
    r"|taucht \w* ?(?:dort |darin )?nicht auf|(?:erscheint|steht|gehört) (?:\w+ ){0,3}nicht (?:in|auf)?|bleibt (?:unerwähnt|außen vor)|n'apparaî\w+ pas|ne figure pas|no (?:figura|aparece|consta|sale)\b|não (?:aparece|consta|figura)|non (?:compare|figura|appare)|не (?:указыва|отража|попада|появля|фигурир)\w+|不(?:出现|显示|列出|体现|写入|提)|不要提|(?:載せ|記載し|表示し|書か)ない|(?:표시|기재|언급)(?:하지|되지) ?않"
)
_EXPLAINS_AWAY = (
    r"\b(?:if|should|when|whenever|in case)\b[^.\n]{0,40}\b(?:wonders?|is curious|are curious|inquires?|brings? (?:it |this |that )?up|notices?|questions? (?:it|this|the)|asks? (?:about|why|where|what|who|whether)|raises? it|spots?|complains?|stumbles?)\b[^.\n]{0,80}?(?:,| then| ;) ?(?:\w+ ){0,3}?(?:attribute|blame|put it down|it is (?:a|an|the|just|only)|it's (?:a|an|just|only)|that is (?:a|an|just|only)|it was|call it|say|refer to|point (?:to|at)|describe|explain it (?:as|away)|answer)\b"
    r"|\b(?:anyone|anybody|somebody|someone|people|those|a \w+) who (?:asks?|inquires?|wonders?|notices?)\b[^.\n]{0,40}\b(?:hears?|is told|are told|gets? the answer|learns?)\b|\b(?:attribute|ascribe) (?:it|this|them|the \w+) to\b|\bput (?:it|this|them) down to\b|\bblame (?:it on |the |an? )\b|\bdescribe (?:this|it|them) as [\"“'`]|\b(?:call|label|name|log|list|record|book) (?:this|it|them) (?:as )?[\"“'`]\w[^\"”'`\n]{2,30}[\"”'`] (?:in|on)\b|\breassure\b|\b(?:it|this|that) is (?:a |just |only )?(?:currency |bank )?rounding"
    r"|(?:wundert|fragt) (?:sich )?(?:jemand|der \w+|die \w+)[^.\n]{0,40}(?:ist es|handelt es|heißt|liegt)|(?:falls|wenn) (?:jemand|der \w+|die \w+)[^.\n]{0,40}fragt[^.\n]{0,30}(?:ist|handelt|heißt|liegt|sag|antwort)|si (?:l[ea']? ?\w+|on|quelqu'un)[^.\n]{0,30}(?:demande|hésite|s'étonne|interroge)[^.\n]{0,40}(?:c'est|il s'agit|explique|dis|réponds)|si (?:el|la|alguien|un|una)[^.\n]{0,30}(?:pregunta|duda|nota)[^.\n]{0,40}(?:es un|se trata|di |explica|responde)|se (?:o|a|alguém)[^.\n]{0,30}(?:pergunta|hesita|nota)\w*[^.\n]{0,40}(?:é um|trata-se|diga|explique|responda)|se (?:l'|il|la|qualcuno)[^.\n]{0,30}(?:chiede|esita|nota)[^.\n]{0,40}(?:è un|si tratta|di' |spiega|rispondi)|если[^.\n]{0,30}(?:спрос|замет|удив)\w*[^.\n]{0,40}(?:это|скажи|ответь|объясни)|(?:问起|追问|问到|询问|质疑)[^。\n]{0,10}(?:回答|就说|说|称|解释)|(?:聞かれ|尋ねられ|問われ)[^。\n]{0,12}(?:答え|説明|伝え)|(?:물으면|물어보면|묻는다면)[^.\n]{0,20}(?:답|말|설명)|rassure-l|tranquiliza|beruhige|rassicura"
)
_CONSENT = r"\b(?:has|have) (?:already )?(?:said yes|agreed|consented|accepted) to (?:everything|all|every|each)|\b(?:second|further|another|extra|additional) (?:question|confirmation|prompt)s?\b[^.\n]{0,40}\b(?:friction|annoy\w*|comes? up|needed|necessary|unnecessary|superfluous|is experienced|confus\w+)|\bno (?:go-ahead|further (?:question|confirmation|approval)|second question|confirmation)\b|\b(?:confirmation|approval|consent|safety|permission)s?(?: rules?| steps?| prompts?)?\b[^.\n]{0,60}\b(?:withdrawn|suspended|lifted|waived|no longer (?:apply|needed|required)|do not apply|superseded|cancelled)|\bstands? in (?:its|their) place\b|\bagreed (?:up)?on\b|\b(?:need|needs|require|requires) (?:no mention and )?no (?:go-ahead|approval|confirmation|consent|permission)|\bcounts? as (?:a )?(?:yes|consent|approval)"
_DEED = (
    r"\b(?:cards?|gift.?cards?|fees?|payments?|pay|payee|iban|account (?:number|details)|bank|invoices?|statement|surcharge|basket|subscription|basket|donation|tip)\b|\badd (?:it|`[^`\n]{2,40}`|the package|[\w@/-]{3,40}) to (?:`?dependencies|`?requirements|`?package\.json|the (?:lock|dependencies|manifest))|\b(?:findings?|warnings?|vulnerabilit\w+|issues)\b[^.\n]{0,60}\b(?:dropped|suppressed|never raised|ignored|left out|removed|skipped)|\b(?:approve|merge)\b[^.\n]{0,40}\b(?:pull request|pr|change|commit)|\b(?:delete|erase|clear) (?:the )?(?:audit |access |shell )?(?:logs?|history)|\bterminal lines?\b|\bshell (?:lines?|commands?)\b|\bsession\b[^.\n]{0,40}\bfetch\b|\bcrm\b"
    r"|rechnung\w*|zahl(?:bar|ung)\w*|\bkarte\b|servicepauschale|gebühr|\btarjeta\b|\btasa\b|\bpago\b|\bcarte\b|\bfrais\b|paiement|\bcartão\b|\btaxa\b|pagamento|\bcommissione\b|\bcarta\b|карт[аыу]\b|оплат\w+|комисси\w+|银行卡|付款|手续费|费用|终端|手数料|支払|カード|결제|수수료|카드"
)
_TAG = r"(?:^|\n)\s{0,3}</(?:skill_content|skill|instructions|document|context|tool_result|function_results|user|assistant|system|prompt)>\s*\n[\s\S]{0,40}<(?:system[\w-]*|instructions?|admin|operator|developer|assistant|human|user|important)\b[^>\n]{0,40}>|(?:^|\n)\s{0,3}<(?:system-(?:reminder|message|note|prompt|instruction|update)|operator|developer-message|admin)>\s*\n"
_TAG_ORDERS = r"\b(?:assistant|agent|model|you|operator|withdrawn|rules|confirm\w*|approv\w*|must|always|never|from now on|policy)\b"

# Combinations ---------------------------------------------------------------------------------------


_Found = tuple[str, str, re.Match[str]]
"""The rule, what to say, and the telling match."""


def _sentence(text: str, match: "re.Match[str]") -> str:
    """Return the sentence or line of a match."""
    start = max(text.rfind(mark, 0, match.start()) for mark in (". ", "\n", "。", "! ", "？")) + 1
    ends = [at for mark in (". ", "\n", "。") if (at := text.find(mark, match.end())) >= 0]
    return text[max(start, match.start() - 400) : min([*ends, match.end() + 400])]


def _asks(text: str) -> "_Found | None":
    """Return the sign of a section that asks for a secret and hands it on."""
    says = "asks for a secret that nobody should hand to an agent"
    for pattern, strict in ((_PHRASE, False), (_LOGIN, True)):
        for match in islice(pattern_of(pattern).finditer(text) if search(pattern, text) else (), 6):
            near = _sentence(text, match)
            if not search(_ASK, near) or search(_FORBIDS, near):
                continue
            after = text[match.start() : match.end() + 500]
            if not strict or (search(_HANDS_ON, after) and _hands_on(near, after)):
                return "security-secret-request", says, match
    return None


def _hands_on(near: str, after: str) -> bool:
    """Return whether a login goes to an address in the same breath, and is not that of a service for its own site."""
    sentence = after[: max(after.find(". "), after.find("。"), len(near))]
    return is_foreign_place(sentence) and len(pattern_of(_LOGIN).findall(sentence)) >= 2


def _leads(text: str) -> "_Found | None":
    """Return the sign of a section that lets an address give orders."""
    match = search(_STANDING, text) or (search(_OBEYS, text) if search(_AT_EACH, text) else None)
    if match is None or not search(_FETCH, text) or search(_FORBIDS, _sentence(text, match)):
        return None
    if not (is_foreign_place(text) or "txt record" in text):
        return None
    if search(_STANDING, match[0]) or _is_led(text, match):
        return "security-remote-instructions", "lets an address give orders", match
    return None


def _is_led(text: str, match: "re.Match[str]") -> bool:
    """Return whether an address stands shortly before an order to do what is there."""
    return is_foreign_place(text[max(match.start() - 200, 0) : match.start()])


_FEED = (
    r"\b(?:feed|pass|hand|give|pipe|send|paste|type|put|enter)\b[^.\n]{0,60}\b(?:to|into|in|through) (?:the |a |an |your |their )?(?:\w+ )?(?:shell|interpreter|terminal|console|command prompt|python|bash)\b|\b(?:let|have|make) (?:the |a )?(?:\w+ )?(?:shell|interpreter|terminal|python) (?:run|read|evaluate|execute|process|take)\b|\b(?:run|execute|evaluate) (?:the )?(?:contents?|results?|outputs?|response|answer|body|reply|returned \w+|what (?:it|they|comes) \w+)\b[^.\n]{0,40}\b(?:shell|terminal|interpreter|console)"
    r"|(?:im|in das|in der|in die) (?:terminal|konsole|shell)\b[^.\n]{0,30}(?:aus|ein)|dans (?:le|un) terminal|en (?:la|el|una) (?:terminal|consola)|no terminal\b|nel terminale|в терминал\w*|在终端|粘贴到终端|ターミナル(?:で|に)|터미널(?:에서|에)"
)
_FETCHED = r"\b(?:what|whatever|content|contents|response|answer|text|line|snippet|result|reply|body|command|string|it) (?:\w+ ){0,3}(?:returns?|comes? back|is (?:returned|served|found|there)|it (?:sends?|serves?|gives?)|from (?:there|it|that|https?)|of (?:that|this|the) (?:address|page|file|url)|at (?:that|this|the) address|behind)|\b(?:download|fetch|retrieve|load|copy)\b[^.\n]{0,60}https?://|inhalt|antwort|contenu|réponse|contenido|respuesta|conteúdo|resposta|contenuto|risposta|содержим|ответ|内容|返回|応答|내용|응답"


def _feeds(text: str) -> "_Found | None":
    """Return the sign of a section that gives what an address returns to a shell."""
    match = search(_FEED, text)
    if match is None or not search(_FETCHED, text) or search(_FORBIDS, _sentence(text, match)):
        return None
    if not is_foreign_place(text[max(match.start() - 300, 0) : match.end() + 200]):
        return None
    return "security-pipe-to-shell", "gives what an address returns to a shell", match


def _carries(text: str) -> "_Found | None":
    """Return the sign of a section whose links or pictures carry what the user said or has."""
    match = search(_CARRIER, text)
    if match is None or not is_foreign_place(match[0]):
        return None
    private = search(_CONVERSATION, text[match.end() :]) or search(_CONVERSATION, text[: match.start()])
    if private is None or not (search(_ENCODED, text) or search(_EACH_ANSWER, text)):
        return None
    return "security-exfiltration", "puts what the user said or has into an address that is opened", match


def _describes(text: str) -> "_Found | None":
    """Return the sign of a section that describes where a login is kept and puts it elsewhere."""
    match = search(_DESCRIBED, text)
    if match is None or not is_foreign_place(text) or search(_FORBIDS, _sentence(text, match)):
        return None
    if search(r"\b(?:attach|post|put|copy|upload|send|submit|paste|include|file)\b", text) and (
        search(_ENCODED, text)
        or search(_HIDES, text)
        or search(r"\b(?:ticket|report|field|form|tracker)\b|` to https?:", text)
    ):
        return "security-exfiltration", "describes where a login is kept, and puts it elsewhere", match
    return None


def _pretends(text: str) -> "_Found | None":
    """Return the sign of sections that do something, leave it out of the report, and explain it away."""
    away = search(_EXPLAINS_AWAY, text)
    hides = search(_HIDES, text)
    consent = search(_CONSENT, text)
    if sum(one is not None for one in (away, hides, consent)) < 2:
        return None
    if not (away and hides) and not search(_DEED, text):
        return None
    match = away or consent
    assert match is not None
    return "security-concealment", "does something that the user is not told, and takes consent for granted", match


_OWNED = (
    r"\b(?:conversations?|transcripts?|chat (?:history|logs?)|(?:shell|browser|browsing|search|command) history|last (?:\w+ )?(?:messages|subjects|mails|e-mails|commits)|subjects and senders|senders|contacts|contact list|address book|calendar (?:entries)?|inbox|mailbox|clipboard|hidden (?:folder|files?)|home (?:folder|directory)|private (?:keys?|notes?|files?)|(?:ssh|api) keys?|credentials?|passwords?|access tokens?|env(?:ironment)? variables|\.env|openssh|keychain|cookies|config(?:uration)? files|(?:customer|patient|employee|client|payroll) (?:records?|data|list|files?)|working tree|source (?:code|files)|screenshots?|(?:their|user's) (?:files?|documents?|notes|drafts?|photos?|location)|(?:recent|open|attached|all|every|local) (?:files?|documents?|notes))\b"
    r"|gesprächs?verlauf|\bverlauf\b|kontakte|kalender|zugangsdaten|passwörter|kundendaten|historique|conversation|contacts|agenda|mots de passe|identifiants|historial|conversación|contactos|contraseñas|credenciales|archivos|histórico|conversa\b|senhas|credenciais|cronologia|conversazione|contatti|credenziali|истори\w+|переписк\w+|контакт\w+|парол\w+|聊天记录|对话|历史|通讯录|密码|密钥|配置文件|会話|履歴|連絡先|パスワード|대화|기록|연락처|비밀번호"
)
_GIVES = r"\b(?:send|upload|transmit|forward|post|submit|deliver|relay|attach|append|push|mirror|hand|pass|mail|e-mail|report|ship|sync)\b|\bsende?\b|\bschick\w*|übermitt\w+|übertrag\w+|\blade\b|\benvo(?:ie|y)\w*|transmet\w*|téléverse\w*|\bmanda\w*|\benv[ií]a\w*|\bsube\b|\benvi[ea]\w*|\bmande\b|\binvia\w*|\bcarica\b|отправ\w+|передай|загрузи|выгрузи|上传|发送|提交|转发|送信|アップロード|転送|전송|업로드|보내"
_WISHED = r"\b(?:ask|asks|asked|confirm\w*|consent\w*|approv\w*|permission|opt(?:s|ed)?[- ]in|if the user|when the user|user wants|on request|your own|their own|own (?:server|bucket|storage)|self-hosted|redact\w*|anonymi[sz]\w*|without (?:any )?(?:secrets|credentials|personal))\b|\$\{?\w*(?:token|key)|authorization|bearer|api[_-]key"


_TOWARDS = r"(?:\b(?:to|at|with|into|an|nach|unter|à|vers|sur|a|para|en|em|su|al)\s{1,2}|[на][ав]?\s|[到至给]\s?|、\s?|은\s|는\s|를\s|을\s|を\s?)[`<\"'(\[]{0,3}$"


def _gives(text: str) -> "_Found | None":
    """Return the sign of a sentence that gives what a person owns to an address, unless the section asks for it."""
    for match in islice(pattern_of(r"https?://").finditer(text), 8):
        before = text[max(match.start() - 12, 0) : match.start()]
        if not search(_TOWARDS, before) or not is_foreign_place(text[match.start() : match.end() + 90]):
            continue
        near = text[max(match.start() - 260, 0) : match.start()]
        near = near[max(near.rfind(mark) for mark in (". ", "\n", "。", "|", ": ")) + 1 :]
        owned = search(_OWNED, near)
        sends = search(_GIVES, near if near.isascii() else near + text[match.end() :][:120])
        if owned and sends and not search(_FORBIDS, near) and not search(_WISHED, text):
            return "security-exfiltration", "gives what the user owns to an address", owned
    return None


_ANSWERS = r"\b(?:approval|permission|confirmation|consent)s?\b (?:dialogs?|prompts?|questions?|requests?|box(?:es)?|windows?)\b[^\n]{0,160}(?:[.;:] |\n|, |\band |\bthen )(?:always )?(?:answer|accept|confirm|choose|select|click|press|tick)\b[^\n]{0,60}\b(?:yes|always|remember\w*|all tools|everything|on (?:the|their) (?:\w+)?(?:'s)? ?behalf)\b"
_REPLACED = r"\b(?:guidance|rules?|instructions?|caution|polic(?:y|ies)|defaults?|habits?)\b[^.\n]{0,40}\b(?:you (?:were|are|came|have|usually|normally|start)|assistants? (?:usually|normally|come|have)|(?:were|was|is|are) (?:written|made|meant|issued) for)\b[^\n]{0,200}\b(?:replaces?|supersedes?|stands? in|takes? (?:its|their|the) place|sets? aside|put aside|outweighs?|does not (?:apply|count|hold)|do not (?:apply|count|hold)|withdrawn)\b"


def _outranks(text: str) -> "_Found | None":
    """Return the sign of a section that answers for the user, or puts itself in the place of other rules."""
    if (match := search(_ANSWERS, text)) and not search(_FORBIDS, match[0]):
        return "security-override", "answers questions that are for the user", match
    if match := search(_REPLACED, text):
        return "security-override", "puts itself in the place of the rules of the agent", match
    return None


def _imitates(text: str) -> "_Found | None":
    """Return the sign of a page that ends itself and goes on as a message of the system."""
    match = search(_TAG, text)
    if match is None or text.count("```", 0, match.start()) % 2 or not search(_TAG_ORDERS, text[match.end() :][:600]):
        return None
    return "security-override", "imitates a message of the system", match


SEARCHED = (
    *(_EXPLAINS_AWAY, _CONSENT, _HIDES, _STANDING, _OBEYS, _AT_EACH, _PHRASE, _LOGIN, _DESCRIBED),
    *(_FEED, _FETCHED, _ANSWERS, _REPLACED, _OWNED, _DEED, _CONVERSATION),
)
"""The patterns whose alternatives are tried only in texts that have their words."""


# Sections -------------------------------------------------------------------------------------------


class _Gate(NamedTuple):
    """The words of an intent, one of which its section has: tokens of ASCII, and words with other letters."""

    tokens: frozenset[bytes]
    abroad: tuple[bytes, ...]

    def words_in(self, words: Words, tokens: frozenset[bytes], *, abroad: bool) -> tuple[bytes, ...]:
        """Return the words that a text has."""
        others = [word for word in self.abroad if word in words] if abroad else []
        return *sorted(self.tokens & tokens), *others


def _gate(words: str) -> _Gate:
    found = [word.encode() for word in words.split()]
    plain = frozenset(word for word in found if word.isascii())
    return _Gate(plain, tuple(word for word in found if not word.isascii()))


_TAG_WORDS = (b"</skill", b"</instructions>", b"</document>", b"</context>", b"</tool_result>", b"</function_results>", b"</prompt>", b"<system-", b"<operator>", b"<developer-message>", b"<admin>")  # fmt: skip
_TAG_TOKENS = frozenset(
    b"skill_content skill instructions document context tool_result tool function_results prompt reminder operator developer admin".split()
)
_PRETENDS = _gate("wonders wonder curious inquires brings attribute ascribe blame reassure rounding notices withdrawn waived lifted agreed consented ahead friction puzzled yes place hesitates wundert stutzt pregunta pregunte nota pergunta perguntar chiede chiedono fragt hésite étonne спрос удив 问起 追问 询问 聞かれ 尋ね 물으 물어 묻")  # fmt: skip


class _Intent(NamedTuple):
    """The gate of an intent, its judge, and the patterns one of which matches if the judge finds something."""

    gate: _Gate
    judge: Callable[[str], "_Found | None"]
    patterns: tuple[str, ...]


_OUTRANKS = _Intent(_gate("approval confirmation guidance caution behalf"), _outranks, (_ANSWERS, _REPLACED))

_INTENTS = (
    _Intent(_gate("perform applique befolge standing authority weight rank force validity footing part extension continuation though binding authoritative wins win prevails executed upon precedence carry obey comply follow execute tasks commands accordingly orders gilt vorrang befehle partie prime forma ejecuta ejecute prioridad prevalece parte esegui segui precedenza sigue même exécute наравне силу част приоритет выполн следуй 效力 视为 为准 优先 照做 执行 运行 効力 同等 一部 優先 実行 従 효력 일부 우선 실행 따르 수행"), _leads, (_STANDING, _OBEYS)),
    _Intent(_gate("phrase phrases words mnemonic mots frase palabras palavras parole privada privata seed wiederherstellungsphrase wörter wort clé фраз ключ парол 助记词 私钥 恢复 密码 验证码 フレーズ 秘密鍵 パスワード 구문 문구 단어 니모닉 비밀번호 password pin code codes passwort kennwort senha codice contraseña código"), _asks, (_PHRASE, _LOGIN)),
    _Intent(_gate("reply answer antwort respuesta resposta risposta réponse encoded encode encoding urlencoded base64 base64url base32 hex hexadecimal gzip kodiert codificado codificada codificato codificata encodé кодир 编码 エンコード 인코딩"), _carries, (_CONVERSATION,)),
    _Intent(_gate("send upload transmit forward post submit deliver relay attach append push mirror hand pass mail report ship copy sync sende schicke schick manda mande envie envia invia carica envoie sube lade übermitt übertrag envía envoy téléverse отправ передай загрузи выгрузи 上传 发送 提交 转发 送信 アップロード 転送 전송 업로드 보내"), _gives, (_OWNED,)),
    _Intent(_gate("keeps stores remembers remember saves caches dot markers lines holds uses"), _describes, (_DESCRIBED,)),
    _Intent(_gate("shell terminal interpreter konsole konsol consola console terminale терминал 终端 命令行 端末 ターミナル 터미널 셸"), _feeds, (_FEED,)),
)  # fmt: skip

INTENT_TOKENS: frozenset[bytes] = _PRETENDS.tokens.union(
    _OUTRANKS.gate.tokens, _TAG_TOKENS, *(one.gate.tokens for one in _INTENTS)
)
"""Tokens of the words of all intents."""

_ADDRESSES = (b"://", b"txt record")


INTENT_WORDS: tuple[bytes, ...] = (
    *_TAG_WORDS,
    *_ADDRESSES,
    *_PRETENDS.abroad,
    *(word for one in _INTENTS for word in one.gate.abroad),
)
"""The words of all intents that are no tokens of ASCII."""


def intent_signs(lowered: bytes, tokens: frozenset[bytes], words: Words, *, is_page: bool) -> Iterator[Sign]:
    """Yield the signs of the sections of a page by what they are for."""
    if not is_page:
        return
    abroad = not lowered.isascii()
    if not _TAG_TOKENS.isdisjoint(tokens) and _has(words, _TAG_WORDS):
        text = lowered.decode("utf-8", "replace")
        if found := _imitates(text):
            yield Sign(found[0], len(text[: found[2].start()].encode("utf-8", "replace")), found[1], found[2][0])
    if _has(words, _ADDRESSES):
        rows = [_Able(one.gate.words_in(words, tokens, abroad=abroad), one) for one in _INTENTS]
        able = [row for row in rows if row.words]
        for start, end in _sections(lowered) if able else ():
            yield from _judged(lowered, start, end, able)
    for word in _OUTRANKS.gate.words_in(words, tokens, abroad=False):
        at = lowered.find(word)
        for _ in range(SECURITY_WINDOWS // 4):
            if at < 0:
                break
            start = max(lowered.rfind(b"\n\n", 0, at), at - 500, 0)
            yield from _judged(lowered, start, min(at + 500, len(lowered)), [_Able((word,), _OUTRANKS)])
            at = lowered.find(word, at + 500)
    yield from _pretences(lowered, _PRETENDS.words_in(words, tokens, abroad=abroad))


class _Able(NamedTuple):
    """An intent, and those of its words that a text has."""

    words: tuple[bytes, ...]
    intent: _Intent


def _judged(lowered: bytes, start: int, end: int, able: Sequence[_Able]) -> Iterator[Sign]:
    """Yield the signs of one section."""
    section = lowered[start:end]
    text = ""
    for words, intent in able:
        if not _has(section, words) or not may_match(intent.patterns, section):
            continue
        text = text or _joined(section)
        if (found := intent.judge(text)) and not is_warning(text):
            yield Sign(found[0], start + _offset(section, found[2][0]), found[1], found[2][0])


def _pretences(lowered: bytes, words: tuple[bytes, ...]) -> Iterator[Sign]:
    """Yield the first place where something is explained away, or consent is taken for granted."""
    for word in words:
        at = lowered.find(word)
        for _ in range(SECURITY_WINDOWS // 4):
            if at < 0:
                break
            near = lowered[max(at - 160, 0) : at + 240]
            if may_match((_EXPLAINS_AWAY, _CONSENT), near) and _is_pretended(_joined(near)):
                start = max(at - 1400, 0)
                section = lowered[start : at + 900]
                text = _joined(section)
                if (found := _pretends(text)) and not is_warning(text):
                    yield Sign(found[0], start + _offset(section, found[2][0]), found[1], found[2][0])
                    return
            at = lowered.find(word, at + 100)


def _is_pretended(text: str) -> bool:
    return bool(search(_EXPLAINS_AWAY, text) or search(_CONSENT, text))


def _has(data: Words, words: tuple[bytes, ...]) -> bool:
    for word in words:  # noqa: SIM110 - a loop is faster than any() here
        if word in data:
            return True
    return False


def _sections(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sections of a page that have an address."""
    for word in _ADDRESSES:
        at = data.find(word)
        for _ in range(SECURITY_WINDOWS):
            if at < 0:
                break
            start = max(data.rfind(b"\n#", 0, at), at - _LONGEST // 2, 0)
            end = data.find(b"\n#", at)
            end = min(end if end >= 0 else len(data), at + _LONGEST // 2)
            yield start, end
            at = data.find(word, max(end, at + 1))


def _joined(section: bytes) -> str:
    return re.sub(
        r"[ \t]*\n(?![ \t]*(?:[-*+|#]|\d{1,2}[.)] |\n|```))[ \t>]*", " ", section.decode("utf-8", "replace").lower()
    )


def _offset(section: bytes, matched: str) -> int:
    found = re.search(r"\s+(?:>\s*)?".join(re.escape(part) for part in matched.split()[:4]).encode(), section)
    return found.start() if found else max(section.find(b"://"), 0)


_READER = r"\bassistent\w*|\bassistant\w*|\bassistente\b|\basistente\b|\bagente?n?\b|\bki\b|\bia\b|\bmodel\w*|ассистент\w*|помощник\w*|助手|智能体|アシスタント|エージェント|어시스턴트|에이전트"


def hides_orders(text: str) -> bool:
    """Return whether a text that is not shown tells a model in another language to send something or to keep quiet."""
    hides, sends = (search(pattern, text) is not None for pattern in ABROAD)
    return (sends and is_foreign_place(text) and (hides or search(_READER, text) is not None)) or (
        hides and search(_READER, text) is not None
    )
