# Completion of skillshelf for bash; made by tools/completion.py.
# Try it:  source <(skillshelf completion bash)
# Keep it: skillshelf completion bash > ~/.local/share/bash-completion/completions/skillshelf

# Names are written by anybody: they are compared and quoted here, and never expanded.
_skillshelf_offer() {
    local name
    while IFS= read -r name; do
        name=$listed$name
        [[ $name == "$value"* ]] || continue
        if [[ -n $quote ]]; then
            # Inside quotes that are not closed yet, only a name that means the same everywhere.
            [[ $name == *[!A-Za-z0-9._/@%+,:=\ -]* ]] || COMPREPLY+=("${name#"$strip"}")
        else
            name=${name#"$strip"}
            printf -v name '%q' "$name"
            # A comma needs no quotes, since braces have them.
            COMPREPLY+=("${name//\\,/,}")
        fi
    done
}

_skillshelf_files() {
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <(compgen "$1" -- "$value")
}

_skillshelf_value() {
    case $1 in
        '') ;;
        dir) _skillshelf_files -d ;;
        file) _skillshelf_files -f ;;
        skill | uri | host | profile | scope | rule | event | command | action)
            if [[ $1 == skill && $value == [./~]* ]]; then
                _skillshelf_files -f
            else
                # Hosts and rules may be several, separated by commas.
                [[ $1 == @(host|rule) && $value == *,* ]] && listed=${value%,*},
                _skillshelf_offer < <(command skillshelf _complete "$1" "${before[@]}" 2>/dev/null)
            fi
            ;;
        *) _skillshelf_offer <<<"${1// /$'\n'}" ;;
    esac
}

# Sets `options` and `takes`, the options that need a value.
_skillshelf_command() {
    case $1 in
        '') options='--profile --cwd --home --config --json --no-cache --all-hosts --version --help' takes='--profile --cwd --home --config' ;;
        inventory) options='--profile --cwd --home --config --json --no-cache --all-hosts --no-pager --help' takes='--profile --cwd --home --config' ;;
        list) options='--profile --cwd --home --config --json --no-cache --no-pager --scope --all --help' takes='--profile --cwd --home --config --scope' ;;
        search) options='--profile --cwd --home --config --json --no-cache --limit --scope --everywhere --help' takes='--profile --cwd --home --config --limit --scope' ;;
        pick) options='--profile --cwd --home --config --json --no-cache --path --plain --help' takes='--profile --cwd --home --config' ;;
        show) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --args --raw --no-pager --help' takes='--profile --cwd --home --config --journal --rotate --otlp --args' ;;
        read) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --no-pager --help' takes='--profile --cwd --home --config --journal --rotate --otlp' ;;
        digest) options='--profile --cwd --home --config --json --no-cache --help' takes='--profile --cwd --home --config' ;;
        why) options='--profile --cwd --home --config --json --no-cache --host --all-hosts --fix --dry-run --help' takes='--profile --cwd --home --config --host' ;;
        hosts) options='--profile --cwd --home --config --json --no-cache --diff --all-hosts --set --dry-run --no-pager --help' takes='--profile --cwd --home --config --diff --set' ;;
        link) options='--profile --cwd --home --config --json --no-cache --to --all-hosts --force --even-so --remove --accept-rule --dry-run --help' takes='--profile --cwd --home --config --to --accept-rule' ;;
        sync) options='--profile --cwd --home --config --json --no-cache --to --dry-run --remove --accept-rule --yes --help' takes='--profile --cwd --home --config --to --accept-rule' ;;
        add) options='--profile --cwd --home --config --json --no-cache --skill --path --ref --host --user --allow-http --token-file --accept-rule --dry-run --yes --help' takes='--profile --cwd --home --config --skill --path --ref --host --token-file --accept-rule' ;;
        install) options='--profile --cwd --home --config --json --no-cache --frozen --offline --user --allow-http --token-file --accept-rule --dry-run --yes --help' takes='--profile --cwd --home --config --token-file --accept-rule' ;;
        outdated) options='--profile --cwd --home --config --json --no-cache --user --allow-http --token-file --help' takes='--profile --cwd --home --config --token-file' ;;
        update) options='--profile --cwd --home --config --json --no-cache --restore --accept --force --user --allow-http --token-file --accept-rule --dry-run --yes --help' takes='--profile --cwd --home --config --token-file --accept-rule' ;;
        diff) options='--profile --cwd --home --config --json --no-cache --no-pager --user --allow-http --token-file --help' takes='--profile --cwd --home --config --token-file' ;;
        verify) options='--profile --cwd --home --config --json --no-cache --all --user --help' takes='--profile --cwd --home --config' ;;
        remove) options='--profile --cwd --home --config --json --no-cache --force --user --dry-run --yes --help' takes='--profile --cwd --home --config' ;;
        rollback) options='--profile --cwd --home --config --json --no-cache --force --user --dry-run --yes --help' takes='--profile --cwd --home --config' ;;
        gc) options='--profile --cwd --home --config --json --no-cache --user --dry-run --yes --help' takes='--profile --cwd --home --config' ;;
        import) options='--profile --cwd --home --config --json --no-cache --user --allow-http --token-file --accept-rule --dry-run --yes --help' takes='--profile --cwd --home --config --token-file --accept-rule' ;;
        export) options='--profile --cwd --home --config --json --no-cache --format -o --user --dry-run --yes --help' takes='--profile --cwd --home --config --format -o' ;;
        pack) options='--profile --cwd --home --config --json --no-cache -o --user --dry-run --yes --help' takes='--profile --cwd --home --config -o' ;;
        publish) options='--profile --cwd --home --config --json --no-cache --site --to --version --user --allow-http --token-file --accept-rule --dry-run --yes --help' takes='--profile --cwd --home --config --site --to --version --token-file --accept-rule' ;;
        release) options='--profile --cwd --home --config --json --no-cache --yanked --why --allow-http --token-file --accept-rule --dry-run --yes --no-pager --help' takes='--profile --cwd --home --config --why --token-file --accept-rule' ;;
        prompt) options='--profile --cwd --home --config --json --no-cache --trust --help' takes='--profile --cwd --home --config' ;;
        tools) options='--profile --cwd --home --config --json --no-cache --trust --help' takes='--profile --cwd --home --config' ;;
        check) options='--profile --cwd --home --config --json --no-cache --fix --fix=names --diff --dry-run --select --ignore --severity --baseline --write-baseline --user --no-pager --format --help' takes='--profile --cwd --home --config --select --ignore --severity --baseline --write-baseline --format' ;;
        explain) options='--profile --cwd --home --config --json --no-cache --no-pager --help' takes='--profile --cwd --home --config' ;;
        eval) options='--profile --cwd --home --config --json --no-cache --queries --against --host --model --runs --journals --output --judge --trust --format --baseline --no-pager --help' takes='--profile --cwd --home --config --queries --against --host --model --runs --journals --output --judge --format --baseline' ;;
        new) options='--profile --cwd --home --config --json --no-cache --root --user --description --scripts --references --assets --for --all-hosts --dry-run --help' takes='--profile --cwd --home --config --root --description --for' ;;
        run) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --yes --help' takes='--profile --cwd --home --config --journal --rotate --otlp --yes' ;;
        enable) options='--profile --cwd --home --config --json --no-cache --in --dry-run --help' takes='--profile --cwd --home --config --in' ;;
        disable) options='--profile --cwd --home --config --json --no-cache --in --dry-run --help' takes='--profile --cwd --home --config --in' ;;
        trust) options='--profile --cwd --home --config --json --no-cache --list --remove --accept-rule --dry-run --help' takes='--profile --cwd --home --config --accept-rule' ;;
        profile) options='--profile --cwd --home --config --json --no-cache --no-pager --help' takes='--profile --cwd --home --config' ;;
        policy) options='--profile --cwd --home --config --json --no-cache --no-pager --help' takes='--profile --cwd --home --config' ;;
        log) options='--profile --cwd --home --config --json --no-cache --session --type --skill --since --until --by --otlp --otlp-content --last --head --server --stream --token-file --allow-http --against --disk --trust --no-pager --help' takes='--profile --cwd --home --config --session --type --skill --since --until --by --otlp --last --head --server --stream --token-file --against' ;;
        ui) options='--profile --cwd --home --config --json --no-cache --all-hosts --port --no-open --journal --help' takes='--profile --cwd --home --config --port --journal' ;;
        site) options='--profile --cwd --home --config --json --no-cache --all-hosts --user --journal --help' takes='--profile --cwd --home --config --journal' ;;
        mcp) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --trust --http --token-file --allow-host --paths --help' takes='--profile --cwd --home --config --journal --rotate --otlp --http --token-file --allow-host' ;;
        serve) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --trust --listen --database --database-file --blobs --issuer --audience --tenant-claim --roles-claim --allow-host --access-log --scope --tenant --expires --keep-lines --password-file --write-address --help' takes='--profile --cwd --home --config --journal --rotate --otlp --listen --database --database-file --blobs --issuer --audience --tenant-claim --roles-claim --allow-host --access-log --scope --tenant --expires --keep-lines --password-file --write-address' ;;
        rpc) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --trust --help' takes='--profile --cwd --home --config --journal --rotate --otlp' ;;
        chat) options='--profile --cwd --home --config --json --no-cache --journal --keep --rotate --otlp --otlp-content --trust --model --once --help' takes='--profile --cwd --home --config --journal --rotate --otlp --model --once' ;;
        completion) options='--profile --cwd --home --config --json --no-cache --help' takes='--profile --cwd --home --config' ;;
        doctor) options='--profile --cwd --home --config --json --no-cache --fix --dry-run --help' takes='--profile --cwd --home --config' ;;
        usage) options='--profile --cwd --home --config --json --no-cache --clear --help' takes='--profile --cwd --home --config' ;;
        uninstall) options='--profile --cwd --home --config --json --no-cache --dry-run --yes --help' takes='--profile --cwd --home --config' ;;
        help) options='--no-pager --help' takes='' ;;
    esac
}

_skillshelf_option() {
    case "$1 $2" in
        'list --scope') kind='scope' ;;
        'search --scope') kind='scope' ;;
        'show --journal') kind='file' ;;
        'read --journal') kind='file' ;;
        'why --host') kind='host' ;;
        'hosts --diff') kind='host' ;;
        'hosts --set') kind='host' ;;
        'link --to') kind='host' ;;
        'link --accept-rule') kind='rule' ;;
        'sync --to') kind='host' ;;
        'sync --accept-rule') kind='rule' ;;
        'add --path') kind='file' ;;
        'add --host') kind='host' ;;
        'add --token-file') kind='file' ;;
        'add --accept-rule') kind='rule' ;;
        'install --token-file') kind='file' ;;
        'install --accept-rule') kind='rule' ;;
        'outdated --token-file') kind='file' ;;
        'update --token-file') kind='file' ;;
        'update --accept-rule') kind='rule' ;;
        'diff --token-file') kind='file' ;;
        'import --token-file') kind='file' ;;
        'import --accept-rule') kind='rule' ;;
        'export --format') kind='vercel apm oci' ;;
        'export -o') kind='dir' ;;
        'pack -o') kind='file' ;;
        'publish --site') kind='dir' ;;
        'publish --token-file') kind='file' ;;
        'publish --accept-rule') kind='rule' ;;
        'release --token-file') kind='file' ;;
        'release --accept-rule') kind='rule' ;;
        'check --select') kind='rule' ;;
        'check --ignore') kind='rule' ;;
        'check --severity') kind='error warning info' ;;
        'check --baseline') kind='file' ;;
        'check --write-baseline') kind='file' ;;
        'check --format') kind='text json sarif github' ;;
        'eval --queries') kind='file' ;;
        'eval --against') kind='dir' ;;
        'eval --host') kind='host' ;;
        'eval --journals') kind='dir' ;;
        'eval --output') kind='dir' ;;
        'eval --format') kind='text json junit' ;;
        'eval --baseline') kind='file' ;;
        'new --root') kind='dir' ;;
        'new --for') kind='host' ;;
        'run --journal') kind='file' ;;
        'enable --in') kind='host' ;;
        'disable --in') kind='host' ;;
        'trust --accept-rule') kind='rule' ;;
        'log --type') kind='event' ;;
        'log --skill') kind='skill' ;;
        'log --by') kind='skill user week search denial error tool' ;;
        'log --token-file') kind='file' ;;
        'log --against') kind='kept disk' ;;
        'ui --journal') kind='file' ;;
        'site --journal') kind='file' ;;
        'mcp --journal') kind='file' ;;
        'mcp --token-file') kind='file' ;;
        'serve --journal') kind='file' ;;
        'serve --database-file') kind='file' ;;
        'serve --access-log') kind='file' ;;
        'serve --scope') kind='skills:read skills:publish journal:write journal:read metrics:read admin' ;;
        'serve --password-file') kind='file' ;;
        'serve --write-address') kind='file' ;;
        'rpc --journal') kind='file' ;;
        'chat --journal') kind='file' ;;
        *' --profile') kind='profile' ;;
        *' --cwd') kind='dir' ;;
        *' --home') kind='dir' ;;
        *' --config') kind='file' ;;
    esac
}

_skillshelf_argument() {
    case "$1 $2" in
        'show 0') kind='skill' ;;
        'read 0') kind='uri' ;;
        'digest 0') kind='file' ;;
        'why 0') kind='skill' ;;
        'hosts 0') kind='host' ;;
        'link '*) kind='skill' ;;
        'sync '*) kind='skill' ;;
        'outdated '*) kind='skill' ;;
        'update '*) kind='skill' ;;
        'diff 0') kind='skill' ;;
        'diff 1') kind='locked disk source' ;;
        'diff 2') kind='locked disk source' ;;
        'verify '*) kind='skill' ;;
        'remove '*) kind='skill' ;;
        'import 0') kind='file' ;;
        'pack 0') kind='skill' ;;
        'publish 0') kind='skill' ;;
        'release 0') kind='list approve yank channel policy' ;;
        'release '*) kind='action' ;;
        'check '*) kind='file' ;;
        'explain 0') kind='rule' ;;
        'eval '*) kind='skill' ;;
        'run 0') kind='skill' ;;
        'enable 0') kind='skill' ;;
        'disable 0') kind='skill' ;;
        'trust 0') kind='dir' ;;
        'profile 0') kind='profile' ;;
        'log 0') kind='show verify stats replay export push' ;;
        'log '*) kind='file' ;;
        'site 0') kind='dir' ;;
        'serve 0') kind='token tenant member migrate journal retention forget' ;;
        'serve '*) kind='action' ;;
        'completion 0') kind='bash zsh fish' ;;
        'doctor '*) kind='python packages native folders cache embeddings packed index runs approvals usage configuration policy store locks links hosts sandbox' ;;
        'help 0') kind='inventory list search pick show read digest why hosts link sync add install outdated update diff verify remove rollback gc import export pack publish release prompt tools check explain eval new run enable disable trust profile policy log ui site mcp serve rpc chat completion doctor usage uninstall help' ;;
    esac
}

_skillshelf() {
    local options='' takes='' kind='' strip='' quote='' listed='' command='' word value
    local -a words before
    COMPREPLY=()
    # By blanks and not by COMP_WORDS, which are divided at colons and equal signs too.
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:blank:]] ]] && words+=('')
    local last=$((${#words[@]} - 1)) position=0 number needs=''
    ((last > 0)) || return 0
    before=("${words[@]:1:last-1}")
    value=${words[last]}
    _skillshelf_command ''
    for ((number = 1; number < last; number++)); do
        word=${words[number]}
        if [[ -n $needs ]]; then
            needs=''
        elif [[ $word == -* ]]; then
            [[ " $takes " == *" $word "* ]] && needs=$word
        elif [[ -z $command ]]; then
            command=$word
            _skillshelf_command "$command"
        else
            position=$((position + 1))
        fi
    done
    if [[ $value == --*=* && -z $needs ]]; then
        needs=${value%%=*}
        [[ $COMP_WORDBREAKS == *=* ]] && value=${value#*=}
    fi
    case $value in
        [\"\']*) quote=${value:0:1} value=${value:1} ;;
    esac
    # Bash replaces what follows the last colon.
    [[ $COMP_WORDBREAKS == *:* && $value == *:* ]] && strip=${value%:*}:
    if [[ -n $needs ]]; then
        _skillshelf_option "$command" "$needs"
    elif [[ $value == -* ]]; then
        kind=$options
    elif [[ -z $command ]]; then
        kind='inventory list search pick show read digest why hosts link sync add install outdated update diff verify remove rollback gc import export pack publish release prompt tools check explain eval new run enable disable trust profile policy log ui site mcp serve rpc chat completion doctor usage uninstall help'
    else
        _skillshelf_argument "$command" "$position"
    fi
    _skillshelf_value "$kind"
}

complete -F _skillshelf skillshelf
