# Warnings and floating-point rules of every target of ours; nothing leaks to those who link them.
function(onepass_settings target)
  # A mask decides every pair alike on every machine: no contraction of a * b + c behind its back.
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wall -Wextra
                                           $<$<BOOL:${ONEPASS_WERROR}>:-Werror>)
endfunction()
