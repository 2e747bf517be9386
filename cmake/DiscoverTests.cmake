# jitsmith_discover_tests(TARGET DEFAULT_LABEL file=label...) makes each doctest case of TARGET a test of CTest, named
# "<folder>/<file>: <case>", at build time. doctest_discover_tests knows neither files nor labels: hence our own.
#
# Labels, all that apply:
#   - a word of the list below in the name of the suite, or in [brackets] in the name of the case;
#   - the label that the target's list gives to the file;
#   - DEFAULT_LABEL when there is no other out of unit, process, fault, gpu.
# A case that prints "SKIP: reason" and does not fail counts as skipped.
#
# The same file is the script that asks the program and writes the list, run after each build of TARGET.

set(known_labels unit process fault gpu exhaustive tsan nosan serial)

function(jitsmith_discover_tests target default_label)
  set(list_file "${CMAKE_CURRENT_BINARY_DIR}/${target}_tests.cmake")
  add_custom_command(
    TARGET ${target}
    POST_BUILD
    BYPRODUCTS "${list_file}"
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${target}>" "-DOUTPUT=${list_file}"
            "-DTESTS_DIR=${PROJECT_SOURCE_DIR}/tests" "-DBUILD_DIR=${CMAKE_BINARY_DIR}" "-DDEFAULT_LABEL=${default_label}" "-DFILE_LABELS=${ARGN}"
            -P "${PROJECT_SOURCE_DIR}/cmake/DiscoverTests.cmake"
    VERBATIM)
  set(include_file "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(WRITE "${include_file}" "if(EXISTS [==[${list_file}]==])\n  include([==[${list_file}]==])\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include_file}")
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${PROGRAM}" --list-test-cases --reporters=xml OUTPUT_VARIABLE xml COMMAND_ERROR_IS_FATAL ANY)

# CMake's lists know ';' and brackets as syntax: hide them while there are lists of names.
string(REPLACE ";" "&semicolon," xml "${xml}")
string(REPLACE "[" "&open," xml "${xml}")
string(REPLACE "]" "&close," xml "${xml}")
string(REGEX MATCHALL "<TestCase [^\n]*" cases "${xml}")

function(read_attribute line name result)
  set(text "")
  if(line MATCHES " ${name}=\"([^\"]*)\"")
    set(text "${CMAKE_MATCH_1}")
  endif()
  string(REPLACE "&semicolon," ";" text "${text}")
  string(REPLACE "&open," "[" text "${text}")
  string(REPLACE "&close," "]" text "${text}")
  string(REPLACE "&quot;" "\"" text "${text}")
  string(REPLACE "&lt;" "<" text "${text}")
  string(REPLACE "&gt;" ">" text "${text}")
  string(REPLACE "&amp;" "&" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(script "")
foreach(case IN LISTS cases)
  read_attribute("${case}" name name)
  read_attribute("${case}" testsuite suite)
  read_attribute("${case}" filename file)

  # A compiler cache may have made it relative to where the build runs.
  get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${BUILD_DIR}")
  file(RELATIVE_PATH file "${TESTS_DIR}" "${file}")
  string(REGEX REPLACE "test_([^/]*)\\.cpp$" "\\1" stem "${file}")

  set(labels "")
  set(kind "${DEFAULT_LABEL}")
  foreach(label IN LISTS known_labels)
    if(suite MATCHES "(^|[^A-Za-z_])${label}($|[^A-Za-z_])"
       OR name MATCHES "\\[${label}\\]"
       OR "${file}=${label}" IN_LIST FILE_LABELS)
      list(APPEND labels ${label})
      if(label MATCHES "^(unit|process|fault|gpu)$")
        set(kind "")
      endif()
    endif()
  endforeach()
  list(APPEND labels ${kind})

  # doctest splits a filter at commas; it matches whole names, so a case of another suite or file is not run as well.
  string(REPLACE "\\" "\\\\" name_filter "${name}")
  string(REPLACE "," "\\," name_filter "${name_filter}")
  string(REPLACE "," "\\," suite_filter "${suite}")
  set(filters "[==[--source-file=*tests/${file}]==] [==[--test-case=${name_filter}]==]")
  if(suite)
    string(APPEND filters " [==[--test-suite=${suite_filter}]==]")
  endif()

  set(test "[==[${stem}: ${name}]==]")
  string(APPEND script "add_test(${test} [==[${PROGRAM}]==] ${filters})\n")
  string(APPEND script "set_tests_properties(${test} PROPERTIES LABELS [==[${labels}]==]\n"
                       "  SKIP_REGULAR_EXPRESSION [==[SKIP: .*Status: SUCCESS!]==]\n"
                       "  FAIL_REGULAR_EXPRESSION [==[test cases: +0 ]==]")  # a filter that finds nothing
  if("serial" IN_LIST labels)
    string(APPEND script " RUN_SERIAL ON")
  endif()
  string(APPEND script ")\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
