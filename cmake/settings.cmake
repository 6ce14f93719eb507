# Warnings and floating-point rules of every target of ours; nothing leaks to those who link them.
function(onepass_settings target)
  # A mask decides every pair alike on every machine: no contraction of a * b + c behind its back.
  # No errno and no trap flags: values stay those of IEEE; loops with sqrt or selections vectorise.
  target_compile_options(
    ${target} PRIVATE -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra
                      $<$<BOOL:${ONEPASS_WERROR}>:-Werror>)
  # Within 2 % of -O3 on the whole, and compiled in three quarters of the time.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  # GCC 12 warns of overlapping copies in `"text" + std::string` where there are none.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()
