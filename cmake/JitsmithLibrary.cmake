# jitsmith_library(NAME SOURCES a.cpp ... HEADERS a.hpp ...) defines the library jitsmith_NAME, exported as
# jitsmith::NAME, from the folder NAME. HEADERS are the public ones: installed, and each checked to compile alone.
# A header that is not listed is private to the tree.

set(JITSMITH_HEADER_DIR "${PROJECT_BINARY_DIR}/include")

function(jitsmith_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS")

  # A link, so that <jitsmith/NAME/x.hpp> finds the header in the source folder, where an editor opens it.
  file(MAKE_DIRECTORY "${JITSMITH_HEADER_DIR}/jitsmith")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${JITSMITH_HEADER_DIR}/jitsmith/${name}" SYMBOLIC)
  list(TRANSFORM arg_HEADERS PREPEND "${JITSMITH_HEADER_DIR}/jitsmith/${name}/")

  set(target jitsmith_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(jitsmith::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION}
                                             VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${JITSMITH_HEADER_DIR}" FILES ${arg_HEADERS})
  target_link_libraries(${target} PUBLIC jitsmith_headers PRIVATE $<BUILD_INTERFACE:jitsmith_warnings>)
  if(JITSMITH_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <fmt/ranges.h> <functional> <map> <mutex> <string> <vector>)
  endif()
  if(JITSMITH_SANITIZE)
    # The host compiler must build kernels as this library was built, or they cannot be loaded.
    target_compile_definitions(${target} PRIVATE "JITSMITH_SANITIZE=\"${JITSMITH_SANITIZE}\"")
  endif()
endfunction()
