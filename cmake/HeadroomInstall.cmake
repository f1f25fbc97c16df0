# Installs the program, the libraries, the public headers and headroomConfig.cmake: a consumer writes
# find_package(headroom) and links headroom::headroom. Every module but those of the command line and its load generator is one static library of the exported set,
# because a static library carries its dependencies with it.
include(CMakePackageConfigHelpers)

set(HEADROOM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
get_property(modules GLOBAL PROPERTY HEADROOM_MODULES)
list(FILTER modules EXCLUDE REGEX "^(cli|bench_serve)")

foreach(module ${modules})
  install(TARGETS headroom_${module} EXPORT headroomTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/headroom)
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/headroom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT headroomTargets NAMESPACE headroom:: DESTINATION ${HEADROOM_CMAKE_DIR})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/headroomConfig.cmake.in ${CMAKE_BINARY_DIR}/headroomConfig.cmake
                              INSTALL_DESTINATION ${HEADROOM_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/headroomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/headroomConfig.cmake ${CMAKE_BINARY_DIR}/headroomConfigVersion.cmake
        DESTINATION ${HEADROOM_CMAKE_DIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(program headroom headroom-doctor)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
