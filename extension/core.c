/*
 * core.c - the two hosts of the Go core
 *
 * process: a child of the worker (synchro_core_host) loads the library, so that an unrecoverable failure of Go costs one child.
 * in_process: the library is loaded here.  A Go runtime changes signal masks and handlers of the thread that starts it and of
 * every thread it makes, therefore: all signals blocked, loaded by a helper thread, our handlers put back, mask restored.
 * The main thread never runs Go.
 */
#include "postgres.h"

#include "compat.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "bgworker.h"
#include "core.h"
#include "core_load.h"
#include "guc.h"

/* How long a child may take to leave after its last word. */
#define REAP_TIMEOUT_MS 500

/* The pipe ends of one core. */
typedef struct CorePipes
{
	int			control[2];
	int			status[2];
} CorePipes;

static void
close_pair(int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

/* Both pipes closed on exec; our ends never block. */
static bool
make_pipes(CorePipes *p)
{
	if (pipe2(p->control, O_CLOEXEC) != 0)
		return false;
	if (pipe2(p->status, O_CLOEXEC) != 0)
	{
		close_pair(p->control);
		return false;
	}
	if (fcntl(p->control[1], F_SETFL, O_NONBLOCK) == 0 && fcntl(p->status[0], F_SETFL, O_NONBLOCK) == 0)
		return true;
	close_pair(p->control);
	close_pair(p->status);
	return false;
}

/* Closes every descriptor from first on. */
static void
close_from(int first)
{
	struct rlimit limit;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 65536)
		limit.rlim_cur = 65536;
	for (int fd = first; fd < (int) limit.rlim_cur; fd++)
		close(fd);
}

/*
 * In the child, between fork and exec: only async-signal-safe calls.  Its own process group keeps signals for the worker's
 * group (pg_terminate_backend, shutdown) away; the worker stops it through the pipe, and the kernel when the worker dies.
 */
pg_noreturn static void
become_host(const CorePipes *p, pid_t parent, const char *program, const char *library)
{
	char	   *argv[] = {"synchro_core_host", (char *) library, NULL};
	char	   *envp[] = {NULL};
	struct sigaction fallback;
	sigset_t	none;
	int			control,
				status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setpgid(0, 0);

	memset(&fallback, 0, sizeof(fallback));
	fallback.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &fallback, NULL);

	/* Out of the way of their final numbers first. */
	control = fcntl(p->control[0], F_DUPFD, 10);
	status = fcntl(p->status[1], F_DUPFD, 10);
	if (control < 0 || status < 0 || dup2(control, SYNCHRO_CONTROL_FD) < 0 || dup2(status, SYNCHRO_STATUS_FD) < 0)
		_exit(1);
	close_from(SYNCHRO_STATUS_FD + 1);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(program, argv, envp);
	_exit(127);
}

/* Starts the process host with all signals blocked, so that none of our handlers runs in the child. */
static pid_t
fork_host(const CorePipes *p, const char *library)
{
	char		program[MAXPGPATH];
	pid_t		parent = getpid();
	pid_t		child;

	snprintf(program, sizeof(program), "%s/synchro_core_host", pkglib_path);
	child = fork();
	if (child == 0)
		become_host(p, parent, program, library);
	return child;
}

typedef struct LoadRequest
{
	const char *library;
	const CorePipes *pipes;
	int			result;
} LoadRequest;

/* Helper thread: nothing of PostgreSQL in here. */
static void *
load_thread(void *arg)
{
	LoadRequest *r = arg;

	r->result = synchro_core_load(r->library, r->pipes->control[0], r->pipes->status[1], NULL);
	return NULL;
}

/* Loads the library into this process; returns SYNCHRO_CORE_*. */
static int
load_here(const CorePipes *p, const char *library)
{
	LoadRequest request = {library, p, SYNCHRO_CORE_NO_LIBRARY};
	pthread_t	thread;

	if (pthread_create(&thread, NULL, load_thread, &request) != 0)
		return SYNCHRO_CORE_NO_LIBRARY;
	pthread_join(thread, NULL);
	/* Go has wrapped or replaced the handlers it found. */
	synchro_worker_signals();
	return request.result;
}

bool
synchro_core_start(SynchroCore *core, int host, const char **failure)
{
	char		library[MAXPGPATH];
	CorePipes	pipes;
	sigset_t	all,
				before;
	int			rc = SYNCHRO_CORE_OK;

	if (!make_pipes(&pipes))
	{
		*failure = "could not make its pipes";
		return false;
	}
	snprintf(library, sizeof(library), "%s/%s.so", pkglib_path, synchro_core_library);

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (host == SYNCHRO_HOST_PROCESS)
		core->pid = fork_host(&pipes, library);
	else
	{
		core->pid = MyProcPid;
		rc = load_here(&pipes, library);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);

	/* The far ends belong to the core: to the child's copies, or to Go in here once it has started. */
	if (host == SYNCHRO_HOST_PROCESS || rc != SYNCHRO_CORE_OK)
	{
		close(pipes.control[0]);
		close(pipes.status[1]);
	}
	if (core->pid < 0 || rc != SYNCHRO_CORE_OK)
	{
		close(pipes.control[1]);
		close(pipes.status[0]);
		*failure = core->pid < 0 ? "could not make its process" :
			rc == SYNCHRO_CORE_WRONG_ABI ? "its library belongs to another version" : "could not load its library";
		return false;
	}
	core->running = true;
	core->host = host;
	core->control_fd = pipes.control[1];
	core->status_fd = pipes.status[0];
	core->line_length = 0;
	return true;
}

bool
synchro_core_send(SynchroCore *core, char kind, const char *payload, int length)
{
	char	   *frame = palloc(5 + length);
	uint32		size = pg_hton32((uint32) length);
	ssize_t		written;

	frame[0] = kind;
	memcpy(frame + 1, &size, sizeof(size));
	if (length > 0)
		memcpy(frame + 5, payload, length);
	/* A frame that fits the pipe only in part would break the protocol for good, but then nobody is reading anyway. */
	written = write(core->control_fd, frame, 5 + length);
	explicit_bzero(frame, 5 + length);
	pfree(frame);
	return written == 5 + length;
}

bool
synchro_core_read(SynchroCore *core, SynchroStatusFn fn, void *arg)
{
	char		buffer[1024];
	ssize_t		n;

	for (;;)
	{
		n = read(core->status_fd, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		if (n == 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
		{
			if (buffer[i] != '\n')
			{
				if (core->line_length >= SYNCHRO_STATUS_LINE - 1)
					return false;
				core->line[core->line_length++] = buffer[i];
				continue;
			}
			core->line[core->line_length] = '\0';
			core->line_length = 0;
			fn(core->line, arg);
		}
	}
}

bool
synchro_core_stop(SynchroCore *core, int timeout_ms, SynchroStatusFn fn, void *arg)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);

	if (!core->running)
		return true;
	if (synchro_core_send(core, SYNCHRO_FRAME_STOP, NULL, 0))
	{
		while (synchro_core_read(core, fn, arg))
		{
			long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

			if (left <= 0)
				break;
			/* Not our latch: it may be set for good while we stop. */
			(void) WaitLatchOrSocket(NULL, WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
									 core->status_fd, left, synchro_wait_event());
		}
	}
	return GetCurrentTimestamp() < deadline;
}

const char *
synchro_core_reap(SynchroCore *core)
{
	static char how[64];
	int			status = 0;
	pid_t		done = 0;

	close(core->control_fd);
	close(core->status_fd);
	core->running = false;
	if (core->host == SYNCHRO_HOST_IN_PROCESS)
		return "ended";

	for (int waited = 0; waited <= REAP_TIMEOUT_MS && done == 0; waited += 10)
	{
		done = waitpid(core->pid, &status, WNOHANG);
		if (done == 0)
			(void) WaitLatch(NULL, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10, synchro_wait_event());
	}
	if (done == 0)
	{
		kill(core->pid, SIGKILL);
		while ((done = waitpid(core->pid, &status, 0)) < 0 && errno == EINTR)
			;
	}
	if (done < 0)
		return "ended";
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was terminated by signal %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(status));
	return how;
}
