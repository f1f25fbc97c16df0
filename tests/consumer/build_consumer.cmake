# cmake -DBUILD= -DPROJECT= -DWORK= -DCOMPILER= -DGENERATOR= -DBUILD_TYPE= -DFLAGS= -DVERSION= -P build_consumer.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# The consumer must not see this source tree, only the prefix.
file(COPY ${PROJECT}/ DESTINATION ${WORK}/source)
run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
string(STRIP "${output}" output)
if(NOT output STREQUAL "headroom ${VERSION}")
  message(FATAL_ERROR "the consumer printed '${output}', expected 'headroom ${VERSION}'")
endif()
