# pkg_config.sh COMPILER PKG_CONFIG_FOLDER BUILD_FOLDER: builds main.cc as a Makefile would.
set -eu
here=$(dirname "$0")
export PKG_CONFIG_PATH="$2"
# shellcheck disable=SC2046
"$1" -std=c++20 "$here/main.cc" -o "$3/by_pkg_config" $(pkg-config --cflags --libs --static onepass)
"$3/by_pkg_config"
