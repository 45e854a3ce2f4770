/* keyway-esp: strongSwan's charon negotiates, Keyway's gateway (`keyway esp up`) has the SAs. */

#include "gateway.h"
#include "ipsec.h"
#include "socket.h"

#include <daemon.h>
#include <plugins/plugin.h>

METHOD(plugin_t, get_name, char *, plugin_t *this)
{
	return "keyway-esp";
}

METHOD(plugin_t, get_features, int, plugin_t *this, plugin_feature_t *features[])
{
	static plugin_feature_t all[] = {
		PLUGIN_CALLBACK(kernel_ipsec_register, keyway_ipsec_create),
			PLUGIN_PROVIDE(CUSTOM, "kernel-ipsec"),
		PLUGIN_CALLBACK(socket_register, keyway_socket_create),
			PLUGIN_PROVIDE(CUSTOM, "socket"),
				PLUGIN_DEPENDS(CUSTOM, "kernel-ipsec"),
	};

	*features = all;
	return countof(all);
}

METHOD(plugin_t, destroy, void, plugin_t *this)
{
	gateway_close();
	free(this);
}

/* charon looks for this name. */
__attribute__((visibility("default"))) plugin_t *keyway_esp_plugin_create(void)
{
	plugin_t *this;

	INIT(this,
		.get_name = _get_name,
		.get_features = _get_features,
		.destroy = _destroy,
	);
	gateway_open();
	return this;
}
