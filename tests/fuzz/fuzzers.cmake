# One fuzzer a file: fuzz_NAME.cpp defines LLVMFuzzerTestOneInput. With Clang libFuzzer drives it; with GCC the small
# driver in main.cpp does, without coverage. The corpus of NAME is the folder corpus/NAME.
set(fuzzers)

foreach(name IN LISTS fuzzers)
  add_executable(fuzz_${name} fuzz/fuzz_${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE jitsmith::jitsmith jitsmith_warnings)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE fuzz/main.cpp)
  endif()
  add_test(NAME fuzz/${name} COMMAND fuzz_${name} -runs=100000 "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}")
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz)
endforeach()
