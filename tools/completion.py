"""Write the completion scripts of bash, zsh and fish from the table of commands; `--check` only compares them.

`python tools/completion.py` writes `src/skillshelf/completions`. Names of skills, hosts and profiles are asked for when
they are completed. They come from files that anybody may have written, so no script evaluates them: bash compares and
quotes them one by one (`compgen -W` would expand them), zsh takes them as an array, fish as the lines of a command.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "src" / "skillshelf" / "completions"
sys.path.insert(0, str(FOLDER.parent.parent))

from skillshelf.cli.command_table import COMMANDS, HELP, KINDS, SHARED, Command, Option  # noqa: E402
from skillshelf.cli.completion import SCRIPTS  # noqa: E402

__all__ = ["scripts"]

_BY_VALUE = {"DIR": "dir", "FILE": "file", "PATH": "file", "HOST": "host", "H": "host", "RULE": "rule", "R": "rule"}
"""What an option takes that does not say it, by the word that stands for its value."""

_LISTED = ("host", "rule")
"""Names of which several may be given, separated by commas."""

NAMES = [name for name in COMMANDS if name]
WITH_VALUE = [option.name for option in SHARED if option.value]


def kind_of(option: Option) -> str:
    """Return what the value of an option or an argument is: one of the kinds, words, or nothing known."""
    kind = option.of or _BY_VALUE.get((option.value or "").removesuffix(",..."), "")
    return " ".join(NAMES) if kind == "command" else kind


def is_named(kind: str) -> bool:
    """Return True for a kind whose names are asked for."""
    return kind in KINDS and kind not in ("dir", "file")


def options_of(command: Command) -> list[Option]:
    """Return the options of a command, the one for help included."""
    return [*command.options, HELP[1]]


# bash ---------------------------------------------------------------------------------------------

BASH = r"""# Completion of skillshelf for bash; made by tools/completion.py.
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
        @KINDS@)
            if [[ $1 == skill && $value == [./~]* ]]; then
                _skillshelf_files -f
            else
                # Hosts and rules may be several, separated by commas.
                [[ $1 == @LISTED@ && $value == *,* ]] && listed=${value%,*},
                _skillshelf_offer < <(command skillshelf _complete "$1" "${before[@]}" 2>/dev/null)
            fi
            ;;
        *) _skillshelf_offer <<<"${1// /$'\n'}" ;;
    esac
}

# Sets `options` and `takes`, the options that need a value.
_skillshelf_command() {
    case $1 in
@COMMANDS@
    esac
}

_skillshelf_option() {
    case "$1 $2" in
@OPTIONS@
    esac
}

_skillshelf_argument() {
    case "$1 $2" in
@ARGUMENTS@
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
        kind='@NAMES@'
    else
        _skillshelf_argument "$command" "$position"
    fi
    _skillshelf_value "$kind"
}

complete -F _skillshelf skillshelf
"""


def bash() -> str:
    """Return the script for bash."""
    commands, options, arguments = [], [], []
    for name, command in COMMANDS.items():
        every = options_of(command)
        takes = " ".join(option.name for option in every if option.value)
        names = " ".join(option.name for option in every)
        commands.append(f"        {name or chr(39) * 2}) options='{names}' takes='{takes}' ;;")
        own = [option for option in every if option not in SHARED and kind_of(option)]
        options += [f"        '{name} {option.name}') kind='{kind_of(option)}' ;;" for option in own]
        for number, argument in enumerate(command.arguments):
            if kind_of(argument):
                pattern = f"'{name} '*" if argument.many else f"'{name} {number}'"
                arguments.append(f"        {pattern}) kind='{kind_of(argument)}' ;;")
    options += [f"        *' {option.name}') kind='{kind_of(option)}' ;;" for option in SHARED if kind_of(option)]
    filled = {
        "LISTED": f"@({'|'.join(_LISTED)})",
        "KINDS": " | ".join(kind for kind in KINDS if is_named(kind)),
        "COMMANDS": "\n".join(commands),
        "OPTIONS": "\n".join(options),
        "ARGUMENTS": "\n".join(arguments),
        "NAMES": " ".join(NAMES),
    }
    text = BASH
    for key, value in filled.items():
        text = text.replace(f"@{key}@", value)
    return text


# zsh ----------------------------------------------------------------------------------------------

ZSH = r"""#compdef skillshelf
# Completion of skillshelf for zsh; made by tools/completion.py.
# Try it:  source <(skillshelf completion zsh)
# Keep it: skillshelf completion zsh > a folder of $fpath, as _skillshelf

# Names are written by anybody: they stay elements of an array, and compadd quotes them.
_skillshelf_names() {
    local kind="${@[-1]}"
    local -a names
    # Hosts and rules may be several, separated by commas.
    [[ $kind == (@LISTED@) ]] && compset -P '*,'
    if [[ $kind == skill && $PREFIX == [./~]* ]]; then
        _files
        return
    fi
    names=("${(@f)$(command skillshelf _complete "$kind" "${_skillshelf_before[@]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    # The other arguments are those that _arguments passes on.
    compadd "${@[1,-2]}" -a names
}

_skillshelf() {
    local curcontext="$curcontext" state
    local -a line _skillshelf_before
    _skillshelf_before=("${(@)words[2,CURRENT-1]}")
    _arguments -C \
@SHARED@
        '1: :->command' \
        '*:: :->rest' && return
    case $state in
        command)
            local -a commands
            commands=(
@NAMES@
            )
            _describe -t commands command commands
            ;;
        rest)
            case $line[1] in
@COMMANDS@
            esac
            ;;
    esac
}

if [[ $funcstack[1] == _skillshelf ]]; then
    _skillshelf "$@"
else
    compdef _skillshelf skillshelf
fi
"""


def zsh() -> str:
    """Return the script for zsh."""
    without = [*SHARED, *(one for one in COMMANDS[""].options if one not in SHARED), HELP[1]]
    names = [f"                {_quoted(f'{name}:{_spec_text(COMMANDS[name].help)}')}" for name in NAMES]
    commands = []
    for name in NAMES:
        specs = [_zsh_option(option) for option in options_of(COMMANDS[name])]
        specs += [_zsh_argument(number, one) for number, one in enumerate(COMMANDS[name].arguments, 1)]
        lines = " \\\n".join(f"                        {spec}" for spec in specs)
        commands.append(f"                {name})\n                    _arguments \\\n{lines}\n                    ;;")
    text = ZSH.replace("@LISTED@", "|".join(_LISTED)).replace(
        "@SHARED@", "\n".join(f"        {_zsh_option(option)} \\" for option in without)
    )
    return text.replace("@NAMES@", "\n".join(names)).replace("@COMMANDS@", "\n".join(commands))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _spec_text(text: str) -> str:
    """Return a text for a specification of `_arguments` or `_describe`."""
    return "".join(f"\\{one}" if one in "\\[]:`$" else one for one in text)


def _zsh_action(option: Option) -> str:
    kind = kind_of(option)
    if kind in ("dir", "file"):
        return "_files -/" if kind == "dir" else "_files"
    words = kind.replace(":", "\\:")
    return f"_skillshelf_names {kind}" if is_named(kind) else f"({words})" if kind else " "


def _zsh_option(option: Option) -> str:
    repeat, equals = "*" if option.many else "", "=" if option.value else ""
    value = f":{option.value}:{_zsh_action(option)}" if option.value else ""
    return _quoted(f"{repeat}{option.name}{equals}[{_spec_text(option.help)}]{value}")


def _zsh_argument(number: int, argument: Option) -> str:
    place = "*" if argument.many else str(number) if argument.required else f"{number}:"
    return _quoted(f"{place}:{argument.name}:{_zsh_action(argument)}")


# fish ---------------------------------------------------------------------------------------------

FISH = r"""# Completion of skillshelf for fish; made by tools/completion.py.
# Try it:  skillshelf completion fish | source
# Keep it: skillshelf completion fish > ~/.config/fish/completions/skillshelf.fish

# Names are written by anybody: fish takes each line as one word, and quotes it.
function __skillshelf_names
    if test $argv[1] = skill; and string match -qr '^[./~]' -- (commandline -ct)
        __fish_complete_path (commandline -ct)
        return
    end
    set -l listed ''
    if contains $argv[1] @LISTED@; and string match -q '*,*' -- (commandline -ct)
        # Several, separated by commas.
        set listed (string replace -rf '^(.*,).*$' '$1' -- (commandline -ct))
    end
    for name in (command skillshelf _complete $argv[1] (commandline -opc)[2..-1] 2>/dev/null)
        echo -- $listed$name
    end
end

# Prints the command of the line and the number of its arguments before the cursor.
function __skillshelf_place
    set -l needs 0
    set -l name ''
    set -l count 0
    for word in (commandline -opc)[2..-1]
        if test $needs -eq 1
            set needs 0
        else if contains -- $word @TAKES@
            set needs 1
        else if string match -q -- '-*' $word
            continue
        else if test -z "$name"
            set name $word
        else
            set count (math $count + 1)
        end
    end
    echo $name
    echo $count
end

function __skillshelf_is
    set -l place (__skillshelf_place)
    test "$place[1]" = "$argv[1]"; or return 1
    test (count $argv) -lt 2; or test "$place[2]" = "$argv[2]"
end

complete -c skillshelf -f
@LINES@
"""


def fish() -> str:
    """Return the script for fish."""
    takes = sorted({one.name for command in COMMANDS.values() for one in command.options if one.value})
    lines = list(_fish_lines())
    return (
        FISH.replace("@LISTED@", " ".join(_LISTED))
        .replace("@TAKES@", " ".join(takes))
        .replace("@LINES@", "\n".join(lines))
    )


def _fish_lines() -> Iterator[str]:
    for option in (*SHARED, HELP[1]):
        yield f"complete -c skillshelf {_fish_option(option)}"
    for option in (one for one in COMMANDS[""].options if one not in SHARED):
        yield f"complete -c skillshelf -n \"__skillshelf_is ''\" {_fish_option(option)}"
    for name in NAMES:
        summary = _fish_quoted(COMMANDS[name].help)
        yield f"complete -c skillshelf -n \"__skillshelf_is ''\" -a {name} -d {summary}"
    for name in NAMES:
        for option in (one for one in COMMANDS[name].options if one not in SHARED):
            yield f"complete -c skillshelf -n '__skillshelf_is {name}' {_fish_option(option)}"
        for number, argument in enumerate(COMMANDS[name].arguments):
            if kind_of(argument):
                place = name if argument.many else f"{name} {number}"
                yield f"complete -c skillshelf -n '__skillshelf_is {place}' {' '.join(_fish_values(argument))}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_values(option: Option) -> Sequence[str]:
    kind = kind_of(option)
    if kind == "dir":
        return ("-a", "'(__fish_complete_directories (commandline -ct))'")
    if kind == "file":
        return ("-F",)
    if is_named(kind):
        return ("-a", f"'(__skillshelf_names {kind})'")
    return ("-a", _fish_quoted(kind)) if kind else ()


def _fish_option(option: Option) -> str:
    words = ["-l", option.name.lstrip("-"), "-d", _fish_quoted(option.help)]
    if option.value:
        words += ["-r" if kind_of(option) == "file" else "-x", *_fish_values(option)]
    return " ".join(words)


def scripts() -> dict[str, str]:
    """Return the text of each script by the name of its file."""
    return {SCRIPTS["bash"]: bash(), SCRIPTS["zsh"]: zsh(), SCRIPTS["fish"]: fish()}


def main() -> int:
    """Write the scripts, or name those that are out of date."""
    FOLDER.mkdir(exist_ok=True)
    status = 0
    for name, text in scripts().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{'out of date' if '--check' in sys.argv else 'written'}: {path.name}")
            status = 1 if "--check" in sys.argv else 0
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
