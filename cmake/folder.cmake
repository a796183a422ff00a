# weir_folder(<name> [USES folder...] [LINKS library...] [TEST_LINKS library...])
#
# Makes the library weir_<name> of every .cc in the folder (and one level below), and the test program <name>_test of every
# *_test.cc beside them. USES names other folders of src/; the layer check holds the order between them.
find_package(Threads REQUIRED)
if(WEIR_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

add_custom_target(layers ALL
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -P ${CMAKE_SOURCE_DIR}/cmake/check_layers.cmake
  COMMENT "Checking the order between folders")

function(weir_folder name)
  cmake_parse_arguments(ARG "" "" "USES;LINKS;TEST_LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h */*.cc */*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  set(has_code ${sources})
  list(FILTER has_code INCLUDE REGEX "\\.cc$")
  set(scope PUBLIC)
  if(has_code)
    add_library(weir_${name} STATIC ${sources})
    add_dependencies(weir_${name} layers)
  else()
    add_library(weir_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(weir_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  list(TRANSFORM ARG_USES PREPEND weir_)
  target_link_libraries(weir_${name} ${scope} ${ARG_USES} ${ARG_LINKS} Threads::Threads)

  if(WEIR_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE weir_${name} ${ARG_TEST_LINKS} GTest::gtest GTest::gmock GTest::gtest_main rapidcheck rapidcheck_gtest)
    add_test(NAME ${name} COMMAND ${name}_test)
    # They take seconds; one that hangs is ended and named.
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
