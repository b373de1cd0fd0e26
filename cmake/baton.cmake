# Warnings, sanitizers, ccache and lld for everything, and the three kinds of target baton has.

if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  endif()
  # Which of them is measured and trusted: docs/design/dependencies.md.
  find_program(LLD ld.lld)
  if(LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers
                    $<$<AND:$<BOOL:${BATON_WERROR}>,$<NOT:$<CONFIG:Release>>>:-Werror>)  # at -O3 g++ 12 warns of what is not there
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # These too, inside std::vector and std::string; clang and the sanitizers look as well.
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of libstdc++ 12 is made of what the same library calls deprecated.
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(BATON_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ loses track inside std::variant once it has added its own checks; the plain build keeps the warning.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BATON_SANITIZE})
endif()

# baton_library(name [LINKS ...]): src/<name>/**/*.cc without the tests, as libbaton_<name>.a and baton::<name>, the
# name it has for those who find_package(baton).
function(baton_library name)
  cmake_parse_arguments(arg "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    add_library(baton_${name} INTERFACE)
    return()
  endif()
  add_library(baton_${name} STATIC ${sources})
  target_include_directories(baton_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                  $<INSTALL_INTERFACE:include/baton>)
  target_compile_features(baton_${name} PUBLIC cxx_std_23)
  target_link_libraries(baton_${name} PUBLIC ${arg_LINKS})
  add_library(baton::${name} ALIAS baton_${name})
endfunction()

# baton_quick_to_compile(test): under a sanitizer tests compile in half the time unoptimised, and run as fast, for what
# they call is optimised as before.
function(baton_quick_to_compile test)
  if(BATON_SANITIZE)
    target_compile_options(${test} PRIVATE -O0)
  endif()
endfunction()

# baton_test(name [ONE_THREAD filter]): src/<name>/**/*_test.cc as one program, <name>_test. What the filter names
# is long and knows no threads, so there is nothing in it for ThreadSanitizer.
function(baton_test name)
  cmake_parse_arguments(arg "" "ONE_THREAD" "" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name}_test PRIVATE BATON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  baton_quick_to_compile(${name}_test)
  target_link_libraries(${name}_test PRIVATE baton_${name} GTest::gtest GTest::gmock GTest::gtest_main)
  set(filter "*")
  if(BATON_SANITIZE MATCHES "thread" AND arg_ONE_THREAD)
    set(filter "-${arg_ONE_THREAD}")
  endif()
  gtest_discover_tests(${name}_test TEST_FILTER "${filter}" NO_PRETTY_VALUES PROPERTIES TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()

# baton_program(name folder [LINKS ...]): src/<folder>/*.cc as the program <name>
function(baton_program name folder)
  cmake_parse_arguments(arg "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
endfunction()
