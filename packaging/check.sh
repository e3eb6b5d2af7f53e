#!/bin/bash
# Checks what is packaged with tools that have to be installed first: `make check-packaging`.
# A tool that cannot be had is named at the end, and nothing else is held up by it.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=.venv-tools
missing=()

# A program from a package of Debian's, unpacked beside the other tools: nothing is installed, no rights are needed.
fetch() { # PACKAGE
	local unpacked="$tools/debian/$1"
	[ ! -e "$unpacked" ] && command -v apt-get dpkg-deb > /dev/null || return 0
	rm -rf "$unpacked.new" && mkdir -p "$unpacked.new"
	(cd "$unpacked.new" && apt-get download -q "$1" && dpkg-deb -x "$1"_*.deb .) && mv "$unpacked.new" "$unpacked" ||
		printf '%s could not be had from Debian\n' "$1" >&2
}

step() { printf '\n--- %s\n' "$*"; }

step 'Containerfile: hadolint'
"$tools/bin/hadolint" packaging/container/Containerfile

step 'compose.yaml, home.yaml: the schema of compose files'
"$tools/bin/check-jsonschema" --builtin-schema vendor.compose-spec packaging/compose/compose.yaml packaging/compose/home.yaml

step 'dashboard: the types of Grafana'\''s own SDK'
"$tools/bin/python" packaging/observability/check_dashboard.py

step 'alert rules and the queries of the dashboard: promtool'
if ! command -v promtool > /dev/null; then
	fetch prometheus
	PATH="$PATH:$PWD/$tools/debian/prometheus/usr/bin"
fi
if command -v promtool > /dev/null; then
	promtool check rules packaging/observability/alerts.yml
	(cd packaging/observability && promtool test rules alerts.test.yml)
	queries=$(mktemp --suffix .json)
	trap 'rm -f "$queries"' EXIT
	python3 packaging/observability/dashboard.py --rules > "$queries"
	promtool check rules "$queries"
else missing+=('promtool (apt-get install prometheus): rules were not evaluated'); fi

step 'Helm chart: helm, the schemas of Kubernetes, the settings of the broker'
if ! command -v helm > /dev/null && command -v go > /dev/null; then
	[ -x "$tools/bin/helm" ] || GOBIN="$PWD/$tools/bin" go install helm.sh/helm/v3/cmd/helm@v3.22.0
	PATH="$PATH:$PWD/$tools/bin"
fi
if command -v helm > /dev/null; then
	"$tools/bin/python" packaging/helm/check.py "$(command -v helm)" "$SHARECORE"
else missing+=('helm, or Go to build it: the chart was not rendered'); fi

step 'unit: systemd-analyze'
if command -v systemd-analyze > /dev/null; then
	root=$(mktemp -d)
	# the program that the unit names need not be installed here
	install -m 644 -D packaging/systemd/sharecore.service "$root/sharecore.service"
	sed -i 's|/opt/sharecore/bin/sharecore|/bin/true|' "$root/sharecore.service"
	systemd-analyze verify "$root/sharecore.service"
	rm -r "$root"
else missing+=('systemd-analyze: the unit was not verified'); fi

if ((${#missing[@]})); then
	printf '\nnot checked here: %s\n' "${missing[@]}" >&2
	exit 1
fi
printf '\nall of it is as it should be\n'
