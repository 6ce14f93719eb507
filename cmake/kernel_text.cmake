# cmake -D OUT=file.cc -D ROOT=src -D "NAMES=a.cuh|b.h" -P kernel_text.cmake
# Writes text_files() of src/cuda/kernel_text.h: the files NAMES under ROOT as string literals.
string(REPLACE "|" ";" names "${NAMES}")
set(literals "")
foreach(name IN LISTS names)
  file(READ "${ROOT}/${name}" text)
  string(APPEND literals "    {\"${name}\", R\"onepass(${text})onepass\"},\n")
endforeach()
file(WRITE "${OUT}" "#include \"cuda/kernel_text.h\"

namespace onepass::cuda {

std::span<const TextFile> text_files() {
  static constexpr TextFile files[] = {
${literals}  };
  return files;
}

}  // namespace onepass::cuda
")
