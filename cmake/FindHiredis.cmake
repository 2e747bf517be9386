# Finds hiredis, 0.14 or later, and defines Hiredis::Hiredis; with hiredis_ssl (1.0 or later) and OpenSSL also
# Hiredis::SSL. Debian 12 ships 0.14 with a pkg-config file only.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_HIREDIS QUIET hiredis)
endif()
set(_parents "")
foreach(_dir IN LISTS PC_HIREDIS_INCLUDE_DIRS)
  cmake_path(GET _dir PARENT_PATH _parent)  # the file names the folder hiredis itself
  list(APPEND _parents "${_parent}")
endforeach()
find_path(Hiredis_INCLUDE_DIR hiredis/hiredis.h HINTS ${PC_HIREDIS_INCLUDE_DIRS} ${_parents})
find_library(Hiredis_LIBRARY hiredis HINTS ${PC_HIREDIS_LIBRARY_DIRS})
find_library(Hiredis_SSL_LIBRARY hiredis_ssl HINTS ${PC_HIREDIS_LIBRARY_DIRS})
set(Hiredis_VERSION ${PC_HIREDIS_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hiredis REQUIRED_VARS Hiredis_LIBRARY Hiredis_INCLUDE_DIR VERSION_VAR Hiredis_VERSION)
mark_as_advanced(Hiredis_INCLUDE_DIR Hiredis_LIBRARY Hiredis_SSL_LIBRARY)

if(Hiredis_FOUND AND NOT TARGET Hiredis::Hiredis)
  add_library(Hiredis::Hiredis UNKNOWN IMPORTED)
  set_target_properties(Hiredis::Hiredis PROPERTIES IMPORTED_LOCATION "${Hiredis_LIBRARY}"
                                                    INTERFACE_INCLUDE_DIRECTORIES "${Hiredis_INCLUDE_DIR}")
endif()
if(Hiredis_FOUND AND Hiredis_SSL_LIBRARY AND EXISTS "${Hiredis_INCLUDE_DIR}/hiredis/hiredis_ssl.h")
  find_package(OpenSSL 1.1.1 QUIET)
  if(OpenSSL_FOUND AND NOT TARGET Hiredis::SSL)
    add_library(Hiredis::SSL UNKNOWN IMPORTED)
    set_target_properties(Hiredis::SSL PROPERTIES IMPORTED_LOCATION "${Hiredis_SSL_LIBRARY}")
    target_link_libraries(Hiredis::SSL INTERFACE Hiredis::Hiredis OpenSSL::SSL OpenSSL::Crypto)
  endif()
endif()
