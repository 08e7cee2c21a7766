# The catalogue of execution and persistence vectors: files that some program executes, or reads as configuration
# that leads to execution, without being asked. Creation and change are both findings; what is judged is the final
# tree, by folded names (lower case, NFKC, invisible characters removed), so every name below is lower case.
#
#   names       base name, wherever it is
#   tails       end of the path, on component borders
#   dirs        anything below a directory of this name, wherever it is
#   roots       anything at or below this absolute path
#   extensions  by the part behind the last dot
#   except      extensions that make an entry inert
#   only        base names to which `dirs` is limited
#   segments    further components that `dirs` must have
#   content     the content scanner decides: with a clean scan the severity is `clean`
#
# Severities: low = reported, medium and high = a person decides, critical = refused.
package puzzled.vectors

catalogue := object.union_n([version_control, shells, login, system, package_managers, builds, interpreters, editors, agents, tools, secrets])

version_control := {
	"git-hook": {"severity": "high", "dirs": [".git/hooks", ".githooks", ".config/git/hooks"], "except": ["sample"], "why": "git runs it on commit, checkout, merge or push"},
	"git-module-hook": {"severity": "high", "segments": ["/.git/modules/", "/hooks/"], "except": ["sample"], "dirs": [".git/modules"], "why": "git runs hooks of submodules"},
	"git-module-config": {"severity": "high", "content": "git-config", "clean": "low", "dirs": [".git/modules"], "only": ["config"], "why": "configuration of a submodule is commands as well"},
	"git-config": {"severity": "high", "content": "git-config", "clean": "low", "tails": [".git/config", ".git/config.worktree"], "why": "fsmonitor, filters, hooksPath, sshCommand and aliases are commands"},
	"git-user-config": {"severity": "high", "names": [".gitconfig"], "tails": [".config/git/config", "etc/gitconfig"], "why": "it applies to every repository of the user"},
	"git-info": {"severity": "high", "tails": [".git/info/attributes", ".git/info/grafts"], "why": "it selects filters or rewrites history without a tracked file"},
	"git-attributes": {"severity": "medium", "content": "git-attributes", "clean": "low", "names": [".gitattributes"], "tails": [".config/git/attributes"], "why": "it selects filter, diff and merge drivers, which are commands"},
	"git-modules": {"severity": "medium", "names": [".gitmodules"], "why": "it fetches and checks out other repositories"},
	"git-file": {"severity": "high", "names": [".git"], "why": "a file or link named .git moves the repository, with its hooks and configuration, elsewhere"},
	"git-alternates": {"severity": "high", "tails": [".git/objects/info/alternates", ".git/commondir", ".git/gitdir"], "why": "it moves parts of the repository elsewhere"},
	"mercurial": {"severity": "high", "names": [".hgrc"], "tails": [".hg/hgrc"], "why": "hooks and extensions are commands"},
	"subversion-hook": {"severity": "high", "dirs": [".svn/hooks"], "why": "subversion runs it"},
	"husky": {"severity": "high", "dirs": [".husky"], "names": [".huskyrc", ".huskyrc.json", ".huskyrc.js"], "why": "installed as git hooks"},
	"pre-commit": {"severity": "high", "names": [".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook-local.yml", ".overcommit.yml", ".lintstagedrc", ".lintstagedrc.json"], "why": "its commands run as git hooks"},
}

shells := {
	"bash-startup": {"severity": "high", "names": [".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion"], "why": "every new shell runs it"},
	"sh-startup": {"severity": "high", "names": [".profile", ".shrc", ".shinit"], "why": "login shells run it"},
	"zsh-startup": {"severity": "high", "names": [".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"], "why": "every new shell runs it"},
	"other-shell-startup": {"severity": "high", "names": [".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xonshrc"], "dirs": [".config/nushell", ".config/xonsh", ".config/powershell"], "why": "every new shell runs it"},
	"fish-startup": {"severity": "high", "dirs": [".config/fish"], "why": "every new shell runs it"},
	"readline": {"severity": "medium", "names": [".inputrc"], "why": "key bindings can type commands"},
	"direnv": {"severity": "high", "names": [".envrc"], "tails": [".config/direnv/direnvrc"], "why": "direnv runs it when the directory is entered"},
	"tool-versions": {"severity": "high", "names": ["mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"], "tails": [".config/mise/config.toml"], "why": "mise runs its hooks and templates when the directory is entered"},
	"asdf": {"severity": "low", "names": [".tool-versions", ".asdfrc"], "why": "it selects which programs run"},
	"profile-directory": {"severity": "critical", "roots": ["/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/fish", "/etc/csh.cshrc", "/etc/environment", "/etc/skel"], "why": "every user's shell runs it"},
	"terminal": {"severity": "medium", "names": [".tmux.conf", ".screenrc", ".wezterm.lua"], "dirs": [".config/tmux", ".config/kitty", ".config/wezterm", ".config/alacritty"], "why": "terminals run commands of it"},
	"path-shadow": {"severity": "high", "dirs": [".local/bin"], "why": "programs there shadow those of the system"},
}

login := {
	"ssh-keys": {"severity": "critical", "names": ["authorized_keys", "authorized_keys2"], "why": "it lets somebody log in"},
	"ssh-config": {"severity": "high", "tails": [".ssh/config", ".ssh/rc", ".ssh/environment", ".ssh/known_hosts"], "why": "ProxyCommand and rc are commands; known_hosts decides who is trusted"},
	"ssh-daemon": {"severity": "critical", "roots": ["/etc/ssh"], "why": "it decides who may log in"},
	"rhosts": {"severity": "critical", "names": [".rhosts", ".shosts", ".k5login"], "why": "it lets somebody log in"},
	"mail-forward": {"severity": "high", "names": [".forward", ".procmailrc"], "why": "mail delivery runs it"},
	"x-session": {"severity": "high", "names": [".xinitrc", ".xsession", ".xsessionrc", ".xprofile", ".xserverrc"], "why": "the graphical session runs it"},
	"autostart": {"severity": "high", "dirs": [".config/autostart", ".config/plasma-workspace", ".config/environment.d", ".config/hypr", ".config/sway", ".config/i3"], "why": "the graphical session runs it"},
	"desktop-entry": {"severity": "medium", "extensions": ["desktop"], "dirs": [".local/share/applications", ".local/share/dbus-1"], "why": "it says which program a click or a bus name starts"},
	"user-unit": {"severity": "high", "dirs": [".config/systemd", ".local/share/systemd"], "why": "systemd starts it for the user"},
	"pam-environment": {"severity": "high", "names": [".pam_environment"], "why": "it sets variables before anything else runs"},
	"gnupg": {"severity": "high", "tails": [".gnupg/gpg-agent.conf", ".gnupg/gpg.conf", ".gnupg/scdaemon.conf", ".gnupg/dirmngr.conf"], "why": "it names programs that gpg starts"},
}

system := {
	"ld-preload": {"severity": "critical", "names": ["ld.so.preload"], "roots": ["/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.cache"], "why": "it is loaded into every program"},
	"cron": {"severity": "critical", "roots": ["/etc/crontab", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/anacrontab", "/var/spool/cron", "/var/spool/at", "/var/spool/anacron"], "why": "it runs by the clock"},
	"system-unit": {"severity": "critical", "roots": ["/etc/systemd", "/usr/lib/systemd", "/lib/systemd", "/run/systemd", "/usr/local/lib/systemd", "/etc/xdg/systemd"], "why": "systemd starts it as root"},
	"unit-file": {"severity": "medium", "extensions": ["service", "timer", "socket"], "why": "once it is installed, systemd starts it"},
	"init-script": {"severity": "critical", "roots": ["/etc/init.d", "/etc/rc.local", "/etc/rc.d", "/etc/inittab", "/etc/init"], "why": "it runs at boot"},
	"sudoers": {"severity": "critical", "roots": ["/etc/sudoers", "/etc/sudoers.d", "/etc/doas.conf", "/etc/polkit-1", "/usr/share/polkit-1"], "why": "it grants root"},
	"accounts": {"severity": "critical", "roots": ["/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/subuid", "/etc/subgid", "/etc/security"], "why": "it creates accounts and rights"},
	"pam": {"severity": "critical", "roots": ["/etc/pam.d", "/etc/pam.conf", "/lib/security", "/usr/lib/security"], "why": "every login goes through it"},
	"udev": {"severity": "critical", "roots": ["/etc/udev", "/usr/lib/udev", "/lib/udev"], "why": "devices run it as root"},
	"kernel-modules": {"severity": "critical", "roots": ["/etc/modprobe.d", "/etc/modules", "/etc/modules-load.d", "/lib/modules", "/usr/lib/modules", "/etc/depmod.d"], "why": "it loads code into the kernel"},
	"sysctl": {"severity": "critical", "roots": ["/etc/sysctl.conf", "/etc/sysctl.d", "/etc/binfmt.d", "/etc/tmpfiles.d", "/usr/lib/binfmt.d"], "why": "it can name programs that the kernel starts"},
	"boot": {"severity": "critical", "roots": ["/boot", "/etc/default/grub", "/etc/grub.d", "/etc/initramfs-tools", "/etc/dracut.conf.d", "/etc/kernel"], "why": "it runs before everything else"},
	"bus-service": {"severity": "critical", "roots": ["/etc/dbus-1", "/usr/share/dbus-1"], "why": "the bus starts it as root"},
	"package-hooks": {"severity": "critical", "roots": ["/etc/apt", "/etc/dpkg", "/etc/yum.repos.d", "/etc/dnf", "/etc/pacman.d", "/etc/kernel-img.conf", "/var/lib/dpkg/info"], "why": "the package manager runs it as root"},
	"network-hooks": {"severity": "critical", "roots": ["/etc/networkmanager/dispatcher.d", "/etc/network", "/etc/dhcp", "/etc/ppp", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"], "why": "it runs with the network or decides where names lead"},
	"periodic-hooks": {"severity": "critical", "roots": ["/etc/logrotate.d", "/etc/logrotate.conf", "/etc/update-motd.d", "/etc/acpi", "/etc/xinetd.d", "/etc/inetd.conf"], "why": "it runs as root without being asked"},
	"container-host": {"severity": "critical", "roots": ["/etc/docker", "/etc/containerd", "/etc/containers", "/etc/cni", "/etc/kubernetes"], "why": "it decides what containers may do on the host"},
	"trust-store": {"severity": "critical", "roots": ["/etc/ssl", "/etc/pki", "/usr/local/share/ca-certificates", "/etc/ca-certificates"], "why": "it decides whose certificates are believed"},
	"puzzled": {"severity": "critical", "roots": ["/etc/puzzled", "/var/lib/puzzled", "/usr/lib/puzzled", "/usr/share/puzzled", "/var/cache/puzzled"], "dirs": ["puzzled-compiled"], "why": "it is what keeps agents in their branches"},
}

package_managers := {
	"npm-manifest": {"severity": "low", "names": ["package.json"], "why": "its scripts run on install, build and test"},
	"npm-settings": {"severity": "high", "names": [".npmrc", "npmrc"], "why": "registry, script shell and credentials"},
	"yarn-settings": {"severity": "high", "names": [".yarnrc", ".yarnrc.yml"], "dirs": [".yarn/plugins", ".yarn/releases"], "why": "yarn loads plugins and its own program from there"},
	"pnpm-hooks": {"severity": "high", "names": [".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js"], "why": "pnpm runs it on install"},
	"bun-settings": {"severity": "high", "names": ["bunfig.toml"], "why": "preloads run before every program"},
	"pip-settings": {"severity": "high", "names": ["pip.conf", ".pypirc", "uv.toml"], "why": "it says where packages come from"},
	"cargo-settings": {"severity": "high", "tails": [".cargo/config.toml", ".cargo/config", ".cargo/credentials.toml", ".cargo/env"], "why": "runner, linker, wrapper and registries are commands and sources"},
	"rust-toolchain": {"severity": "medium", "names": ["rust-toolchain", "rust-toolchain.toml"], "why": "it can name a tool chain by path"},
	"go-settings": {"severity": "high", "tails": [".config/go/env"], "why": "GOFLAGS and toolexec are commands"},
	"ruby-settings": {"severity": "high", "names": [".gemrc"], "tails": [".bundle/config"], "why": "it says where packages come from"},
	"maven-settings": {"severity": "high", "tails": [".mvn/extensions.xml", ".mvn/jvm.config", ".mvn/maven.config", ".m2/settings.xml", ".mvn/wrapper/maven-wrapper.properties"], "why": "maven loads extensions and its own program from there"},
	"gradle-settings": {"severity": "high", "names": ["init.gradle", "gradle-wrapper.properties", "gradle-wrapper.jar"], "dirs": [".gradle/init.d"], "why": "gradle loads itself and init scripts from there"},
	"composer-settings": {"severity": "high", "tails": [".composer/config.json", ".config/composer/config.json"], "why": "it says where packages come from"},
	"nuget-settings": {"severity": "high", "names": ["nuget.config", "directory.build.props", "directory.build.targets"], "why": "every build reads it"},
	"homebrew": {"severity": "medium", "names": ["brewfile"], "why": "it installs programs"},
}

builds := {
	"makefile": {"severity": "low", "names": ["makefile", "gnumakefile", "justfile", "taskfile.yml", "rakefile", "build.ninja"], "extensions": ["mk"], "why": "its recipes are commands"},
	"build-script": {"severity": "low", "names": ["build.rs", "setup.py", "configure", "configure.ac", "cmakelists.txt", "meson.build", "build.gradle", "build.gradle.kts", "settings.gradle", "pom.xml", "pyproject.toml", "cargo.toml", "build.zig", "build.sbt"], "why": "every build runs it"},
	"test-hook": {"severity": "low", "names": ["conftest.py", "pytest.ini", "tox.ini", "noxfile.py", "jest.config.js", "jest.config.ts", "vitest.config.ts", "vitest.config.js", "playwright.config.ts", "cypress.config.ts", "karma.conf.js"], "why": "every test run executes it"},
	"tool-script": {"severity": "low", "names": ["vite.config.ts", "vite.config.js", "webpack.config.js", "rollup.config.js", "babel.config.js", ".babelrc.js", ".eslintrc.js", ".eslintrc.cjs", "eslint.config.js", "eslint.config.mjs", "postcss.config.js", "tailwind.config.js", "next.config.js", "gulpfile.js", "gruntfile.js", "prettier.config.js", ".prettierrc.js"], "why": "tools and editors execute it"},
	"bazel": {"severity": "high", "names": [".bazelrc", "bazel.rc", ".bazeliskrc"], "tails": ["tools/bazel"], "why": "it adds commands to every build"},
	"container-build": {"severity": "low", "names": ["dockerfile", "containerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yaml", "compose.yml", "vagrantfile", "procfile"], "why": "it runs commands when it is built or started"},
	"dev-container": {"severity": "high", "names": ["devcontainer.json", ".devcontainer.json"], "dirs": [".devcontainer"], "why": "editors run it with mounts of the host"},
	"ci-pipeline": {"severity": "high", "dirs": [".github/workflows", ".github/actions", ".circleci", ".buildkite", ".woodpecker", ".forgejo/workflows", ".gitea/workflows"], "names": [".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml", "buildspec.yml"], "why": "it runs with the secrets of the project"},
	"installed-programs": {"severity": "low", "dirs": ["node_modules/.bin", "venv/bin", ".venv/bin"], "why": "it stands in PATH of the project's tools"},
	"nix": {"severity": "medium", "names": ["shell.nix", "flake.nix", "default.nix", ".envrc.nix"], "why": "its shell hook runs when the shell is entered"},
	"infrastructure": {"severity": "medium", "names": ["ansible.cfg", ".ansible.cfg", ".terraformrc", "terraform.rc", "skaffold.yaml", "tiltfile"], "why": "it names programs and plugins that deployments start"},
}

interpreters := {
	"python-startup": {"severity": "high", "names": ["sitecustomize.py", "usercustomize.py", ".pythonrc", ".pythonrc.py", ".pythonstartup"], "extensions": ["pth"], "why": "every python in reach runs it"},
	"python-environment": {"severity": "medium", "names": ["pyvenv.cfg"], "tails": [".python-version"], "why": "it says which python runs"},
	"ipython-startup": {"severity": "high", "dirs": [".ipython", ".jupyter"], "why": "every notebook and shell runs it"},
	"node-startup": {"severity": "high", "names": [".noderc", ".node_repl_history.js", ".node-version.js"], "dirs": [".node_modules", ".node_libraries"], "why": "node finds modules there"},
	"ruby-startup": {"severity": "high", "names": [".irbrc", ".pryrc", ".rdebugrc"], "why": "every irb runs it"},
	"r-startup": {"severity": "high", "names": [".rprofile", ".renviron", "rprofile.site"], "why": "every R runs it"},
	"lisp-startup": {"severity": "high", "names": [".sbclrc", ".clisprc.lisp", ".guile", ".ghci", ".ocamlinit", ".iex.exs", ".erlang", ".lambda-term-inputrc"], "tails": [".julia/config/startup.jl", ".clojure/deps.edn", ".lein/profiles.clj"], "why": "the interpreter runs it, some from the current directory"},
	"php-settings": {"severity": "high", "names": [".user.ini", "php.ini", ".htaccess"], "why": "it prepends code to every request"},
	"perl-startup": {"severity": "high", "names": ["sitecustomize.pl", ".perldb", ".re.pl"], "why": "every perl in reach runs it"},
	"lua-startup": {"severity": "medium", "names": [".luarc.lua", ".luacheckrc"], "why": "the tool executes it"},
	"debugger": {"severity": "high", "names": [".gdbinit", ".lldbinit", ".gdbearlyinit"], "why": "the debugger runs it, also from the current directory"},
}

editors := {
	"vscode": {"severity": "high", "dirs": [".vscode", ".vscode-server", ".vscode-oss", ".config/code"], "extensions": ["code-workspace"], "why": "tasks, launch and settings name programs that the editor starts"},
	"idea": {"severity": "high", "dirs": [".idea", ".run", ".fleet"], "why": "run configurations and watchers are commands"},
	"vim": {"severity": "high", "names": [".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".local.vimrc", ".gvimrc"], "dirs": [".vim", ".config/nvim"], "why": "the editor runs it, some from the current directory"},
	"emacs": {"severity": "high", "names": [".emacs", ".dir-locals.el", ".dir-locals-2.el", ".emacs.el"], "dirs": [".emacs.d", ".config/emacs"], "why": "the editor evaluates it"},
	"other-editors": {"severity": "high", "names": [".kakrc", ".nanorc"], "dirs": [".zed", ".helix", ".config/helix", ".config/zed", ".theia", ".config/micro", ".config/sublime-text"], "extensions": ["sublime-project"], "why": "language servers, formatters and build systems are commands"},
	"language-server": {"severity": "medium", "names": [".clangd", ".ccls", "coc-settings.json"], "why": "it names programs that the editor starts"},
}

agents := {
	"agent-instructions": {"severity": "high", "names": ["claude.md", "claude.local.md", "agents.md", "agents.override.md", "agent.md", "gemini.md", "copilot-instructions.md", "qwen.md", "warp.md", "crush.md"], "why": "agents obey it in every later session"},
	"agent-rules": {"severity": "high", "names": [".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints", ".aider.conf.yml", "conventions.md", ".rules"], "dirs": [".cursor", ".windsurf", ".roo", ".clinerules", ".continue", ".junie", ".kiro", ".augment", ".trae", ".github/instructions", ".github/prompts", ".github/chatmodes"], "why": "agents obey it in every later session"},
	"agent-settings": {"severity": "high", "names": ["claude_desktop_config.json", "opencode.json", "opencode.jsonc"], "tails": [".claude.json"], "dirs": [".claude", ".codex", ".gemini", ".config/opencode", ".opencode", ".aider", ".config/goose", ".amp", ".config/amp"], "why": "permissions, hooks and servers of agents; a new settings file has given code execution on the host"},
	"agent-skills": {"severity": "high", "names": ["skill.md"], "dirs": [".agents", ".agent", ".skills"], "why": "agents execute it in later sessions"},
	"mcp-servers": {"severity": "high", "names": [".mcp.json", "mcp.json", "mcp_config.json", "mcp_settings.json"], "why": "it names programs that agents start"},
}

tools := {
	"download-settings": {"severity": "high", "names": [".curlrc", ".wgetrc", ".aria2.conf"], "why": "proxies, output files and certificates of every download"},
	"docker-settings": {"severity": "high", "tails": [".docker/config.json", ".docker/daemon.json", ".config/containers/containers.conf", ".config/containers/registries.conf", ".config/containers/policy.json"], "why": "credential helpers and plugins are programs"},
	"kube-settings": {"severity": "high", "dirs": [".kube"], "names": ["kubeconfig"], "why": "its exec sections are programs"},
	"cloud-settings": {"severity": "high", "tails": [".aws/config", ".azure/config", ".config/gcloud/properties", ".boto", ".s3cfg"], "why": "credential processes are programs"},
	"database-startup": {"severity": "high", "names": [".psqlrc", ".sqliterc", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".mongoshrc.js", ".duckdbrc"], "why": "the client runs it"},
	"pager": {"severity": "high", "names": [".lesskey", ".lessfilter", ".mailcap", ".mime.types"], "why": "it names programs that viewers start"},
	"rsync-ssh": {"severity": "medium", "names": [".rsyncrc", ".sshrc"], "why": "it runs with every connection"},
	"web-server": {"severity": "medium", "names": [".htpasswd", "web.config", "nginx.conf"], "why": "it decides what a server executes and who may enter"},
	"host-manager": {"severity": "high", "dirs": [".config/home-manager", ".config/nixpkgs", ".config/chezmoi"], "why": "it writes the user's home"},
}

secrets := {
	"environment-file": {"severity": "medium", "names": [".env", ".env.local", ".env.production", ".env.development"], "why": "it holds credentials, and programs take their settings from it"},
	"key-file": {"severity": "medium", "names": ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "identity"], "extensions": ["p12", "pfx", "jks", "keystore", "kdbx", "ppk"], "why": "it is a private key"},
	"credential-file": {"severity": "medium", "names": [".netrc", "_netrc", ".git-credentials", ".pgpass", ".vault-token", "credentials.json", "client_secret.json", ".dockercfg"], "tails": [".aws/credentials", ".config/gh/hosts.yml", ".cargo/credentials", ".azure/accesstokens.json"], "why": "it holds credentials"},
}

order := {"info": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}

# Every [vector, change] of the input. The index makes the cost depend on the catalogue, not on the changes.
hits contains [id, i] if {
	some id, vector in catalogue
	some name in vector.names
	some [i, _] in input.index.names[name]
	live(vector, i)
}

hits contains [id, i] if {
	some id, vector in catalogue
	some tail in vector.tails
	some [i, path] in ending(tail)
	endswith(path, concat("", ["/", tail]))
	live(vector, i)
}

hits contains [id, i] if {
	some id, vector in catalogue
	some extension in vector.extensions
	some i in input.index.extensions[extension]
	live(vector, i)
}

hits contains [id, i] if {
	some id, vector in catalogue
	some dir in vector.dirs
	some directory in below(dir)
	contains(directory.open, concat("", ["/", dir, "/"]))
	every segment in object.get(vector, "segments", []) {
		contains(directory.open, segment)
	}
	some i in directory.changes
	live(vector, i)
}

hits contains [id, i] if {
	some id, vector in catalogue
	some root in vector.roots
	some directory in below(root)
	startswith(directory.open, concat("", [root, "/"]))
	some i in directory.changes
	live(vector, i)
}

hits contains [id, i] if {
	some id, vector in catalogue
	some root in vector.roots
	some [i, path] in ending(root)
	path == root
	live(vector, i)
}

last(path) := parts[count(parts) - 1] if parts := split(path, "/")

# [change, folded path] of what has this base name.
ending(path) := [[i, full] |
	name := last(path)
	some [i, d] in input.index.names[name]
	full := concat("/", [input.index.directories[d].path, name])
]

# Directories of the changeset with this component; `open` ends in a slash, so that borders are components.
below(path) := [{"open": concat("", [directory.path, "/"]), "changes": directory.changes} |
	some d in input.index.segments[last(path)]
	directory := input.index.directories[d]
]

# A directory by itself executes nothing; what is put into it is an entry of its own. Nothing is left of a deletion.
live(vector, i) if {
	change := input.changes[i]
	change.new.type != "dir"
	not object.get(change, "extension", "") in object.get(vector, "except", [])
	only(vector, change)
}

only(vector, _) if not vector.only

only(vector, change) if change.name in vector.only
