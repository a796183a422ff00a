# Shared by ./up and ./check: install what is missing from Debian, configure and build a preset. Sourced, not run.
# Every function says what it does on stderr and returns non-zero when it could not.

say() { printf '%s\n' "$*" >&2; }

# What a release build needs; kept in step with docs/dependencies.md.
BUILD_PACKAGES="g++ cmake ninja-build ccache mold librdkafka-dev libasio-dev libexpected-dev libfmt-dev libspdlog-dev libcli11-dev
  libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev libsqlite3-dev libssl-dev libzstd-dev liblz4-dev libsnappy-dev zlib1g-dev
  libboost1.81-dev prometheus-cpp-dev"
# What the tests need besides.
CHECK_PACKAGES="libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev clang-format-19 clang-tidy-19 python3 kcat git"

# install_packages NAME...: installs those that are missing; asks for nothing, needs root or sudo only when something is missing.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "error: these packages are missing and neither root nor sudo is at hand: ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  # An index that is too old names files the mirror no longer has, so it is refreshed first.
  if ! "${as_root[@]}" apt-get update -qq >"$log" 2>&1 ||
     ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    say "error: apt-get could not install the packages above; see $log"
    return 1
  fi
  rm -f "$log"
}

# build_preset PRESET [TARGET...]: configures once, then builds with ninja.
build_preset() {
  local preset=$1
  shift
  local log=build/$preset.log
  mkdir -p build
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring $preset"
    cmake --preset "$preset" >"$log" 2>&1 || { tail -n 30 "$log" >&2; say "error: configuring $preset failed; see $log"; return 1; }
  fi
  say "building $preset"
  if ! cmake --build "build/$preset" ${*:+--target "$@"} >"$log" 2>&1; then
    grep -E -m 20 'error:|FAILED|CMake Error|undefined reference' "$log" >&2 || tail -n 30 "$log" >&2
    say "error: building $preset failed; see $log"
    return 1
  fi
}
