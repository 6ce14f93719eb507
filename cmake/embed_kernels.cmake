# The kernels' text becomes part of the library: cmake/kernel_text.cmake writes it as C++.
file(GLOB kernel_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
     src/cuda/kernels/*.cuh src/shared/*.h)
list(JOIN kernel_files "|" kernel_names)
list(TRANSFORM kernel_files PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE kernel_paths)
set(kernel_text ${PROJECT_BINARY_DIR}/generated/kernel_text_files.cc)
set(kernel_script ${PROJECT_SOURCE_DIR}/cmake/kernel_text.cmake)
add_custom_command(
  OUTPUT ${kernel_text}
  COMMAND ${CMAKE_COMMAND} -D OUT=${kernel_text} -D ROOT=${PROJECT_SOURCE_DIR}/src -D
          "NAMES=${kernel_names}" -P ${kernel_script}
  DEPENDS ${kernel_paths} ${kernel_script}
  COMMENT "Kernel text into ${kernel_text}"
  VERBATIM)
target_sources(onepass PRIVATE ${kernel_text})
