# Headers, library, `find_package(onepass)` and `pkg-config onepass`.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onepass)
install(TARGETS onepass EXPORT onepass-targets)
install(DIRECTORY include/onepass TYPE INCLUDE)
install(EXPORT onepass-targets NAMESPACE onepass:: DESTINATION ${package_dir})
configure_package_config_file(cmake/onepass-config.cmake.in onepass-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(onepass-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onepass-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/onepass-config-version.cmake DESTINATION ${package_dir})

# The prefix is found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/onepass.pc.in onepass.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onepass.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
