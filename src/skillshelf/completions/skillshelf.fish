# Completion of skillshelf for fish; made by tools/completion.py.
# Try it:  skillshelf completion fish | source
# Keep it: skillshelf completion fish > ~/.config/fish/completions/skillshelf.fish

# Names are written by anybody: fish takes each line as one word, and quotes it.
function __skillshelf_names
    if test $argv[1] = skill; and string match -qr '^[./~]' -- (commandline -ct)
        __fish_complete_path (commandline -ct)
        return
    end
    set -l listed ''
    if contains $argv[1] host rule; and string match -q '*,*' -- (commandline -ct)
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
        else if contains -- $word --accept-rule --access-log --against --allow-host --args --audience --baseline --blobs --by --config --cwd --database --database-file --description --diff --expires --for --format --head --home --host --http --ignore --in --issuer --journal --journals --judge --keep-lines --last --limit --listen --model --once --otlp --output --password-file --path --port --profile --queries --ref --roles-claim --root --rotate --runs --scope --select --server --session --set --severity --since --site --skill --stream --tenant --tenant-claim --to --token-file --type --until --version --why --write-address --write-baseline --yes -o
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
complete -c skillshelf -l profile -d 'the system whose rules apply (default: standard)' -x -a '(__skillshelf_names profile)'
complete -c skillshelf -l cwd -d 'start from this folder (default: the working directory)' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -l home -d 'use another home folder, with its configuration and cache' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -l config -d 'read this configuration file instead of the user\'s and the project\'s' -r -F
complete -c skillshelf -l json -d 'print one JSON value'
complete -c skillshelf -l no-cache -d 'ignore the cache'
complete -c skillshelf -l help -d 'explain this command'
complete -c skillshelf -n "__skillshelf_is ''" -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n "__skillshelf_is ''" -l version -d 'print the version'
complete -c skillshelf -n "__skillshelf_is ''" -a inventory -d 'list every skill of the machine, with its copies, the hosts that see it, and its problems'
complete -c skillshelf -n "__skillshelf_is ''" -a list -d 'list the skills of the catalog'
complete -c skillshelf -n "__skillshelf_is ''" -a search -d 'find the skills that fit a query, best first'
complete -c skillshelf -n "__skillshelf_is ''" -a pick -d 'choose a skill in the terminal (search, preview, enable, disable) and print its name'
complete -c skillshelf -n "__skillshelf_is ''" -a show -d 'print exactly what a model gets when it loads a skill'
complete -c skillshelf -n "__skillshelf_is ''" -a read -d 'print one file of a skill'
complete -c skillshelf -n "__skillshelf_is ''" -a digest -d 'print the digest of all files of a skill (skill-tree-v1)'
complete -c skillshelf -n "__skillshelf_is ''" -a why -d 'explain which agent hosts see a skill, and why the others do not'
complete -c skillshelf -n "__skillshelf_is ''" -a hosts -d 'compare agent hosts: the skills that each one sees, and what its catalog costs'
complete -c skillshelf -n "__skillshelf_is ''" -a link -d 'make a skill visible to another agent host, by a link or a copy'
complete -c skillshelf -n "__skillshelf_is ''" -a sync -d 'make skills visible to agent hosts in one plan, which is shown first and carried out whole or not at all'
complete -c skillshelf -n "__skillshelf_is ''" -a add -d 'install skills of a folder, archive, repository, site or registry, after showing what they are'
complete -c skillshelf -n "__skillshelf_is ''" -a install -d 'make the disk what the lock says, and lock the wishes of skillshelf.toml that are not locked yet'
complete -c skillshelf -n "__skillshelf_is ''" -a outdated -d 'list installed skills whose sources have other files now'
complete -c skillshelf -n "__skillshelf_is ''" -a update -d 'take what the sources have now, after showing every difference; or settle what was edited on the disk'
complete -c skillshelf -n "__skillshelf_is ''" -a diff -d 'show how an installed skill differs from its lock, or else from what its source has now'
complete -c skillshelf -n "__skillshelf_is ''" -a verify -d 'check that every installed skill is what the lock says, and name each file that is not'
complete -c skillshelf -n "__skillshelf_is ''" -a remove -d 'remove installed skills, with their links and wishes'
complete -c skillshelf -n "__skillshelf_is ''" -a rollback -d 'bring back what was installed before the last change, or after an earlier one'
complete -c skillshelf -n "__skillshelf_is ''" -a gc -d 'remove the files from the store that no generation and no known lock names'
complete -c skillshelf -n "__skillshelf_is ''" -a import -d 'install what the lock or list of another tool names: skills-lock.json, apm.yml, skills.json'
complete -c skillshelf -n "__skillshelf_is ''" -a export -d 'write the lock or list of another tool from this project\'s lock: skills-lock.json, apm.yml, skills.json'
complete -c skillshelf -n "__skillshelf_is ''" -a pack -d 'write a skill into one archive, with the same bytes on every machine'
complete -c skillshelf -n "__skillshelf_is ''" -a publish -d 'publish a skill, after showing what it is: as files of a web site, in a registry, or to a team server'
complete -c skillshelf -n "__skillshelf_is ''" -a release -d 'list the releases of a team server, approve or yank one, move a channel, or show and change the policy'
complete -c skillshelf -n "__skillshelf_is ''" -a prompt -d 'print the catalog text that a model gets'
complete -c skillshelf -n "__skillshelf_is ''" -a tools -d 'print the tools that a model gets, with their schemas'
complete -c skillshelf -n "__skillshelf_is ''" -a check -d 'check skills against the standard and good practice, with the line and the fix of each finding'
complete -c skillshelf -n "__skillshelf_is ''" -a explain -d 'explain a rule of `check`: why it exists, an example, how to fix what it finds, how to switch it off'
complete -c skillshelf -n "__skillshelf_is ''" -a eval -d 'test whether skills are found: by search, in what hosts show, and with a model if you name one'
complete -c skillshelf -n "__skillshelf_is ''" -a new -d 'create a skill that passes `check`, in this repository or in the home folder'
complete -c skillshelf -n "__skillshelf_is ''" -a run -d 'run a script of a skill in a sandbox, after you confirm'
complete -c skillshelf -n "__skillshelf_is ''" -a enable -d 'enable a disabled skill for agents that get their skills from skillshelf, or in a host itself'
complete -c skillshelf -n "__skillshelf_is ''" -a disable -d 'disable a skill for agents that get their skills from skillshelf, or in a host itself'
complete -c skillshelf -n "__skillshelf_is ''" -a trust -d 'trust a folder and everything below it, so that models that skillshelf serves see its skills'
complete -c skillshelf -n "__skillshelf_is ''" -a profile -d 'print every field of a profile, or list the profiles'
complete -c skillshelf -n "__skillshelf_is ''" -a policy -d 'show the rules in force, where each comes from, and what the machine\'s administrator forbids'
complete -c skillshelf -n "__skillshelf_is ''" -a log -d 'show a journal, verify that nothing was changed, count which skills are used, replay, export or push it'
complete -c skillshelf -n "__skillshelf_is ''" -a ui -d 'show the skills in a browser of this machine: problems, search, who sees each skill, use; read-only'
complete -c skillshelf -n "__skillshelf_is ''" -a site -d 'write the same pages as static files, with relative links only'
complete -c skillshelf -n "__skillshelf_is ''" -a mcp -d 'serve the skills to agents over the Model Context Protocol, on standard input and output or over HTTP'
complete -c skillshelf -n "__skillshelf_is ''" -a serve -d 'serve the skills of a team over HTTP: people with tokens, tenants, a database; or manage these'
complete -c skillshelf -n "__skillshelf_is ''" -a rpc -d 'serve another program with JSON-RPC 2.0 on standard input and output, one message a line'
complete -c skillshelf -n "__skillshelf_is ''" -a chat -d 'try your skills with a small agent, line by line or for one answer'
complete -c skillshelf -n "__skillshelf_is ''" -a completion -d 'print the completion script of a shell; it completes the names of skills, hosts and profiles, too'
complete -c skillshelf -n "__skillshelf_is ''" -a doctor -d 'check this installation: cache, approvals, configuration, links and copies, sandbox, Python'
complete -c skillshelf -n "__skillshelf_is ''" -a usage -d 'show what searches learned from use: the skills that were loaded after a search, and how often'
complete -c skillshelf -n "__skillshelf_is ''" -a uninstall -d 'remove the links and copies that skillshelf made, its cache and its state, and list what is left'
complete -c skillshelf -n "__skillshelf_is ''" -a help -d 'explain the commands, or one of them'
complete -c skillshelf -n '__skillshelf_is inventory' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is inventory' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is list' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is list' -l scope -d 'only skills of this scope' -x -a '(__skillshelf_names scope)'
complete -c skillshelf -n '__skillshelf_is list' -l all -d 'also errors, shadowed and filtered skills, with the reason for each'
complete -c skillshelf -n '__skillshelf_is search' -l limit -d 'return at most N results (default: 8)' -x
complete -c skillshelf -n '__skillshelf_is search' -l scope -d 'only skills of this scope' -x -a '(__skillshelf_names scope)'
complete -c skillshelf -n '__skillshelf_is search' -l everywhere -d 'search all skills of the inventory, not only those of the profile'
complete -c skillshelf -n '__skillshelf_is pick' -l path -d 'print the folder of the skill instead of its name'
complete -c skillshelf -n '__skillshelf_is pick' -l plain -d 'list skills as numbered lines, for screen readers and simple terminals'
complete -c skillshelf -n '__skillshelf_is show' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is show' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is show' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is show' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is show' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is show' -l args -d 'what the user asks the skill to work on' -x
complete -c skillshelf -n '__skillshelf_is show' -l raw -d 'print the file itself'
complete -c skillshelf -n '__skillshelf_is show' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is show 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is read' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is read' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is read' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is read' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is read' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is read' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is read 0' -a '(__skillshelf_names uri)'
complete -c skillshelf -n '__skillshelf_is digest 0' -F
complete -c skillshelf -n '__skillshelf_is why' -l host -d 'only this host; may be given several times' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is why' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is why' -l fix -d 'apply safe fixes, and link the skill for every --host'
complete -c skillshelf -n '__skillshelf_is why' -l dry-run -d 'say what --fix would do, and do nothing'
complete -c skillshelf -n '__skillshelf_is why 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is hosts' -l diff -d 'show only what two hosts see differently: --diff A B' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is hosts' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is hosts' -l set -d 'your hosts, separated by commas; auto: those found on this machine' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is hosts' -l dry-run -d 'say what --set would write, and write nothing'
complete -c skillshelf -n '__skillshelf_is hosts' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is hosts 0' -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is link' -l to -d 'the hosts, separated by commas (default: yours); may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is link' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is link' -l force -d 'also for a host that ignores disable-model-invocation, so that its model may call it'
complete -c skillshelf -n '__skillshelf_is link' -l even-so -d 'the old name of --force'
complete -c skillshelf -n '__skillshelf_is link' -l remove -d 'remove the links and copies made for these hosts'
complete -c skillshelf -n '__skillshelf_is link' -l accept-rule -d 'link skills of a folder that is not trusted although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is link' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is link' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is sync' -l to -d 'the hosts, separated by commas (default: yours); may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is sync' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is sync' -l remove -d 'remove the links and copies that were made, and the folders made for them'
complete -c skillshelf -n '__skillshelf_is sync' -l accept-rule -d 'link skills of a folder that is not trusted although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is sync' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is sync' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is add' -l skill -d 'only the skills of these names, * for all; may be repeated' -x
complete -c skillshelf -n '__skillshelf_is add' -l path -d 'the folder inside the source' -r -F
complete -c skillshelf -n '__skillshelf_is add' -l ref -d 'a branch, a tag or a commit' -x
complete -c skillshelf -n '__skillshelf_is add' -l host -d 'agents that shall see it, by links or copies; may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is add' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is add' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is add' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is add' -l accept-rule -d 'install skills although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is add' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is add' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is install' -l frozen -d 'only what the lock names, byte for byte; resolve nothing, and never write the lock'
complete -c skillshelf -n '__skillshelf_is install' -l offline -d 'open no connection: only the store, and sources on this disk'
complete -c skillshelf -n '__skillshelf_is install' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is install' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is install' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is install' -l accept-rule -d 'install skills although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is install' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is install' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is outdated' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is outdated' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is outdated' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is outdated' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is update' -l restore -d 'bring the locked files back'
complete -c skillshelf -n '__skillshelf_is update' -l accept -d 'take what lies on the disk as the new version'
complete -c skillshelf -n '__skillshelf_is update' -l force -d 'give up what was edited on the disk'
complete -c skillshelf -n '__skillshelf_is update' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is update' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is update' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is update' -l accept-rule -d 'install skills although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is update' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is update' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is update' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is diff' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is diff' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is diff' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is diff' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is diff 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is diff 1' -a 'locked disk source'
complete -c skillshelf -n '__skillshelf_is diff 2' -a 'locked disk source'
complete -c skillshelf -n '__skillshelf_is verify' -l all -d 'those of this project and your own'
complete -c skillshelf -n '__skillshelf_is verify' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is verify' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is remove' -l force -d 'give up what was edited on the disk'
complete -c skillshelf -n '__skillshelf_is remove' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is remove' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is remove' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is remove' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is rollback' -l force -d 'give up what was edited on the disk'
complete -c skillshelf -n '__skillshelf_is rollback' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is rollback' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is rollback' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is gc' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is gc' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is gc' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is import' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is import' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is import' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is import' -l accept-rule -d 'install skills although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is import' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is import' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is import 0' -F
complete -c skillshelf -n '__skillshelf_is export' -l format -d 'vercel, apm or oci' -x -a 'vercel apm oci'
complete -c skillshelf -n '__skillshelf_is export' -l o -d 'the folder to write to (default: that of the lock)' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is export' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is export' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is export' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is pack' -l o -d 'the archive, ending in .skill or .zip (default: NAME.skill)' -r -F
complete -c skillshelf -n '__skillshelf_is pack' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is pack' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is pack' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is pack 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is publish' -l site -d 'a folder that a web server serves' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is publish' -l to -d 'a registry, oci://HOST/REPOSITORY[:TAG], or a team server, https://HOST' -x
complete -c skillshelf -n '__skillshelf_is publish' -l version -d 'the version of the release on a server (default: that of its frontmatter)' -x
complete -c skillshelf -n '__skillshelf_is publish' -l user -d 'for you in every project (default: for this project)'
complete -c skillshelf -n '__skillshelf_is publish' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is publish' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is publish' -l accept-rule -d 'publish a skill although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is publish' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is publish' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is publish 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is release' -l yanked -d 'list: also yanked releases'
complete -c skillshelf -n '__skillshelf_is release' -l why -d 'yank: the reason, which others see' -x
complete -c skillshelf -n '__skillshelf_is release' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is release' -l token-file -d 'the token for a team server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is release' -l accept-rule -d 'approve: approve a release although this security rule finds something; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is release' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is release' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is release' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is release 0' -a 'list approve yank channel policy'
complete -c skillshelf -n '__skillshelf_is release' -a '(__skillshelf_names action)'
complete -c skillshelf -n '__skillshelf_is prompt' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is tools' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is check' -l fix -d 'apply safe fixes, and show what changed; a name is never changed'
complete -c skillshelf -n '__skillshelf_is check' -l fix=names -d 'the same, and give skills the names of their folders'
complete -c skillshelf -n '__skillshelf_is check' -l diff -d 'show what --fix would change, and change nothing'
complete -c skillshelf -n '__skillshelf_is check' -l dry-run -d 'the same as --diff'
complete -c skillshelf -n '__skillshelf_is check' -l select -d 'only these rules: ids, groups such as name, beginnings such as yaml*' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is check' -l ignore -d 'leave out these rules; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is check' -l severity -d 'show, and fail on, this severity and above (default: show all, fail on warnings)' -x -a 'error warning info'
complete -c skillshelf -n '__skillshelf_is check' -l baseline -d 'report only what is not in this file of known findings' -r -F
complete -c skillshelf -n '__skillshelf_is check' -l write-baseline -d 'write all findings to FILE; with --baseline, only those of it not fixed' -r -F
complete -c skillshelf -n '__skillshelf_is check' -l user -d 'also the skills in your home folder, and those that you named elsewhere'
complete -c skillshelf -n '__skillshelf_is check' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is check' -l format -d 'text, json, sarif or github (default: text)' -x -a 'text json sarif github'
complete -c skillshelf -n '__skillshelf_is check' -F
complete -c skillshelf -n '__skillshelf_is explain' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is explain 0' -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is eval' -l queries -d 'also try the queries in this file' -r -F
complete -c skillshelf -n '__skillshelf_is eval' -l against -d 'test against the skills of this folder instead of the other ones here' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is eval' -l host -d 'test on the text that this host shows; may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is eval' -l model -d 'also ask this model, as openai:gpt-5-mini' -x
complete -c skillshelf -n '__skillshelf_is eval' -l runs -d 'ask it N times for each query (default: 3)' -x
complete -c skillshelf -n '__skillshelf_is eval' -l journals -d 'keep the journals of its runs in this folder' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is eval' -l output -d 'let it do the tasks with and without each skill; write the results here' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is eval' -l judge -d 'judge the results by this model instead' -x
complete -c skillshelf -n '__skillshelf_is eval' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is eval' -l format -d 'text, json or junit (default: text)' -x -a 'text json junit'
complete -c skillshelf -n '__skillshelf_is eval' -l baseline -d 'fail only on what is worse than in this file, made by --json' -r -F
complete -c skillshelf -n '__skillshelf_is eval' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is eval' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is new' -l root -d 'create it in this folder of skills' -x -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is new' -l user -d 'create it in the home folder'
complete -c skillshelf -n '__skillshelf_is new' -l description -d 'what it does and when to use it' -x
complete -c skillshelf -n '__skillshelf_is new' -l scripts -d 'include a script'
complete -c skillshelf -n '__skillshelf_is new' -l references -d 'include a page that is read on demand'
complete -c skillshelf -n '__skillshelf_is new' -l assets -d 'include a template'
complete -c skillshelf -n '__skillshelf_is new' -l for -d 'make it visible to these hosts, separated by commas' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is new' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is new' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is run' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is run' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is run' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is run' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is run' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is run' -l yes -d 'run it without a question if all files of the skill have this digest' -x
complete -c skillshelf -n '__skillshelf_is run 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is enable' -l in -d 'in this host, by its own settings; may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is enable' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is enable 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is disable' -l in -d 'in this host, by its own settings; may be repeated' -x -a '(__skillshelf_names host)'
complete -c skillshelf -n '__skillshelf_is disable' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is disable 0' -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is trust' -l list -d 'list the trusted folders and the approvals'
complete -c skillshelf -n '__skillshelf_is trust' -l remove -d 'stop trusting the folder, and take back the approvals of the skills below it'
complete -c skillshelf -n '__skillshelf_is trust' -l accept-rule -d 'trust the folder although this security rule finds something in its skills; may be repeated' -x -a '(__skillshelf_names rule)'
complete -c skillshelf -n '__skillshelf_is trust' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is trust 0' -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is profile' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is profile 0' -a '(__skillshelf_names profile)'
complete -c skillshelf -n '__skillshelf_is policy' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is log' -l session -d 'show, stats: only sessions whose id begins with S' -x
complete -c skillshelf -n '__skillshelf_is log' -l type -d 'show: only events of this type; may be repeated' -x -a '(__skillshelf_names event)'
complete -c skillshelf -n '__skillshelf_is log' -l skill -d 'show: only events about this skill' -x -a '(__skillshelf_names skill)'
complete -c skillshelf -n '__skillshelf_is log' -l since -d 'show, stats, export: from this date on, or the last 12h, 7d or 4w' -x
complete -c skillshelf -n '__skillshelf_is log' -l until -d 'show, stats, export: before this date or time (UTC)' -x
complete -c skillshelf -n '__skillshelf_is log' -l by -d 'stats: one view, whole: skill, user, week, search, denial, error or tool' -x -a 'skill user week search denial error tool'
complete -c skillshelf -n '__skillshelf_is log' -l otlp -d 'export: the address of an OpenTelemetry receiver' -x
complete -c skillshelf -n '__skillshelf_is log' -l otlp-content -d 'export: send arguments, queries and paths, too'
complete -c skillshelf -n '__skillshelf_is log' -l last -d 'show: only the last N events' -x
complete -c skillshelf -n '__skillshelf_is log' -l head -d 'verify: a sum that you kept elsewhere; its line must still be there' -x
complete -c skillshelf -n '__skillshelf_is log' -l server -d 'verify: a team server that has the journal; its last line must still be there' -x
complete -c skillshelf -n '__skillshelf_is log' -l stream -d 'verify: with --server, what it stores of the journal with this id, or of all' -x
complete -c skillshelf -n '__skillshelf_is log' -l token-file -d 'push, verify: the token for the server; $SKILLSHELF_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is log' -l allow-http -d 'allow plain HTTP to this machine'
complete -c skillshelf -n '__skillshelf_is log' -l against -d 'replay: `kept` inputs (the default where there are some), or the `disk` as it is now' -x -a 'kept disk'
complete -c skillshelf -n '__skillshelf_is log' -l disk -d 'replay: the same as --against=disk'
complete -c skillshelf -n '__skillshelf_is log' -l trust -d 'replay: treat the journal\'s project as trusted'
complete -c skillshelf -n '__skillshelf_is log' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is log 0' -a 'show verify stats replay export push'
complete -c skillshelf -n '__skillshelf_is log' -F
complete -c skillshelf -n '__skillshelf_is ui' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is ui' -l port -d 'listen on this port of 127.0.0.1 (default: a free one)' -x
complete -c skillshelf -n '__skillshelf_is ui' -l no-open -d 'only print the address, and open no browser'
complete -c skillshelf -n '__skillshelf_is ui' -l journal -d 'show the use and the sessions of this journal, or of all in this folder; may be repeated' -r -F
complete -c skillshelf -n '__skillshelf_is site' -l all-hosts -d 'all known hosts, not only those that are set or found on this machine'
complete -c skillshelf -n '__skillshelf_is site' -l user -d 'also the skills of the home folder (default: those of the repository alone)'
complete -c skillshelf -n '__skillshelf_is site' -l journal -d 'show the use and the sessions of this journal, or of all in this folder; may be repeated' -r -F
complete -c skillshelf -n '__skillshelf_is site 0' -a '(__fish_complete_directories (commandline -ct))'
complete -c skillshelf -n '__skillshelf_is mcp' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is mcp' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is mcp' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is mcp' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is mcp' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is mcp' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is mcp' -l http -d 'serve over HTTP at this address, such as 127.0.0.1:8000; port 0: a free one' -x
complete -c skillshelf -n '__skillshelf_is mcp' -l token-file -d 'HTTP: require the token in this file; $SKILLSHELF_MCP_TOKEN works too' -r -F
complete -c skillshelf -n '__skillshelf_is mcp' -l allow-host -d 'HTTP: another name of this server; may be repeated' -x
complete -c skillshelf -n '__skillshelf_is mcp' -l paths -d 'HTTP: show clients the paths of the skills on this machine'
complete -c skillshelf -n '__skillshelf_is serve' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is serve' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is serve' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is serve' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is serve' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is serve' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is serve' -l listen -d 'serve at this address (default: 127.0.0.1:8000); port 0: a free one' -x
complete -c skillshelf -n '__skillshelf_is serve' -l database -d 'sqlite:///FILE (default: one in the data folder) or postgresql://...' -x
complete -c skillshelf -n '__skillshelf_is serve' -l database-file -d 'a file with this address and its password; $SKILLSHELF_DATABASE works too' -r -F
complete -c skillshelf -n '__skillshelf_is serve' -l blobs -d 'where published files are kept: a folder (default), s3://... or oci://...' -x
complete -c skillshelf -n '__skillshelf_is serve' -l issuer -d 'accept tokens that this issuer signs' -x
complete -c skillshelf -n '__skillshelf_is serve' -l audience -d 'the audience that such a token must name' -x
complete -c skillshelf -n '__skillshelf_is serve' -l tenant-claim -d 'the claim that names the tenant (default: tenant)' -x
complete -c skillshelf -n '__skillshelf_is serve' -l roles-claim -d 'the claim that names the roles (default: roles)' -x
complete -c skillshelf -n '__skillshelf_is serve' -l allow-host -d 'another name of this server; may be repeated' -x
complete -c skillshelf -n '__skillshelf_is serve' -l access-log -d 'write a line a request to this file (default: standard error), or none' -r -F
complete -c skillshelf -n '__skillshelf_is serve' -l scope -d 'token create: a scope of the token; may be repeated' -x -a 'skills:read skills:publish journal:write journal:read metrics:read admin'
complete -c skillshelf -n '__skillshelf_is serve' -l tenant -d 'the tenant of a token, member or journal (default: default); retention: only this one' -x
complete -c skillshelf -n '__skillshelf_is serve' -l expires -d 'token create: when the token ends, such as 90d or 2027-01-31' -x
complete -c skillshelf -n '__skillshelf_is serve' -l keep-lines -d 'how long lines of journals are kept, such as 90d, 12w or 2y: older ones are removed every day, or by retention once (default: for ever)' -x
complete -c skillshelf -n '__skillshelf_is serve' -l password-file -d 'migrate: the password of the role that the server connects as' -r -F
complete -c skillshelf -n '__skillshelf_is serve' -l write-address -d 'migrate: write the address for the server into this file; one with a password there is kept' -r -F
complete -c skillshelf -n '__skillshelf_is serve 0' -a 'token tenant member migrate journal retention forget'
complete -c skillshelf -n '__skillshelf_is serve' -a '(__skillshelf_names action)'
complete -c skillshelf -n '__skillshelf_is rpc' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is rpc' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is rpc' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is rpc' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is rpc' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is rpc' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is chat' -l journal -d 'record what happens in this file, as events' -r -F
complete -c skillshelf -n '__skillshelf_is chat' -l keep -d 'keep all inputs beside the journal, for `log replay`'
complete -c skillshelf -n '__skillshelf_is chat' -l rotate -d 'begin a new part of the journal by size or age, such as 10MB,7d,keep=8' -x
complete -c skillshelf -n '__skillshelf_is chat' -l otlp -d 'send the use of skills, without content, to the OpenTelemetry receiver at this address' -x
complete -c skillshelf -n '__skillshelf_is chat' -l otlp-content -d 'send arguments, queries and paths to it, too'
complete -c skillshelf -n '__skillshelf_is chat' -l trust -d 'for this run, show this project\'s skills to the model too'
complete -c skillshelf -n '__skillshelf_is chat' -l model -d 'the model, such as anthropic:NAME, openai:NAME, or the NAME at a local server' -x
complete -c skillshelf -n '__skillshelf_is chat' -l once -d 'answer TEXT and exit; the same as a MESSAGE' -x
complete -c skillshelf -n '__skillshelf_is completion 0' -a 'bash zsh fish'
complete -c skillshelf -n '__skillshelf_is doctor' -l fix -d 'repair what can be made again'
complete -c skillshelf -n '__skillshelf_is doctor' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is doctor' -a 'python packages native folders cache embeddings packed index runs approvals usage configuration policy store locks links hosts sandbox'
complete -c skillshelf -n '__skillshelf_is usage' -l clear -d 'forget all of it'
complete -c skillshelf -n '__skillshelf_is uninstall' -l dry-run -d 'say what would be done, and do nothing'
complete -c skillshelf -n '__skillshelf_is uninstall' -l yes -d 'do not ask'
complete -c skillshelf -n '__skillshelf_is help' -l no-pager -d 'print everything at once, even if it is longer than the terminal'
complete -c skillshelf -n '__skillshelf_is help 0' -a 'inventory list search pick show read digest why hosts link sync add install outdated update diff verify remove rollback gc import export pack publish release prompt tools check explain eval new run enable disable trust profile policy log ui site mcp serve rpc chat completion doctor usage uninstall help'
