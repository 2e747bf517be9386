# jitsmith_fuzzer(NAME LIBRARY...): fuzz_NAME.cpp defines LLVMFuzzerTestOneInput. With Clang libFuzzer drives it; with
# GCC the small driver in main.cpp does, without coverage. Each is a test that runs JITSMITH_FUZZ_SECONDS.
#
# The committed corpus, corpus/NAME, is only read: new inputs go to corpus/NAME of the build folder. An input that fails
# is written to failed/NAME-... there, and named in the output.
set(JITSMITH_FUZZ_SECONDS 10 CACHE STRING "How long each fuzzer runs as a test")
add_custom_target(fuzzers)

function(jitsmith_fuzzer name)
  add_executable(fuzz_${name} fuzz/fuzz_${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN} jitsmith_warnings)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE fuzz/main.cpp)
  endif()
  add_dependencies(fuzzers fuzz_${name})

  set(found "${PROJECT_BINARY_DIR}/corpus/${name}")
  file(MAKE_DIRECTORY "${found}" "${PROJECT_BINARY_DIR}/failed")
  math(EXPR timeout "${JITSMITH_FUZZ_SECONDS} + 120")  # leaves room for the corpus and a loaded machine
  add_test(NAME fuzz/${name}
           COMMAND fuzz_${name} -max_total_time=${JITSMITH_FUZZ_SECONDS} -timeout=20 -rss_limit_mb=1024
                   -malloc_limit_mb=128 -print_final_stats=1 "-artifact_prefix=${PROJECT_BINARY_DIR}/failed/${name}-"
                   "${found}" "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()

jitsmith_fuzzer(bundle jitsmith::cache)
jitsmith_fuzzer(entry jitsmith::cache)
jitsmith_fuzzer(recording jitsmith::jitsmith)
jitsmith_fuzzer(tuning_table jitsmith::jitsmith)
