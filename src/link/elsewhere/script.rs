//! The script for PowerShell: one line of JSON for each part, the most important first, so that a slow part costs only itself.

use std::net::IpAddr;

/// The parts: name, the command for people, and the pipeline that gives its things.
///
/// Fields are those of the classes `MSFT_Net*` (root/StandardCimv2), whose numbers are the same in every language of Windows, unlike
/// the words that people see. Nothing of it needs an administrator, but the switches of Hyper-V.
const PARTS: [(&str, &str); 8] = [
    (
        "adapters",
        "Get-NetAdapter | Select-Object ifIndex,Name,InterfaceDescription,MacAddress,MediaConnectState,MediaDuplexState,FullDuplex,\
         TransmitLinkSpeed,ReceiveLinkSpeed,MtuSize,InterfaceType,NdisPhysicalMedium,Virtual,HardwareInterface,PnPDeviceID,\
         DriverFileName,DriverVersionString",
    ),
    (
        "properties",
        "Get-NetAdapterAdvancedProperty | Where-Object { $_.RegistryKeyword -match '^\\*?(SpeedDuplex|FlowControl|EEE|ReceiveBuffers|\
         TransmitBuffers|NumRssQueues)$' } | Select-Object Name,RegistryKeyword,RegistryValue,ValidRegistryValues,NumericParameterMaxValue",
    ),
    (
        "hardware",
        "Get-NetAdapterHardwareInfo | Select-Object Name,SegmentNumber,BusNumber,DeviceNumber,FunctionNumber,\
         PciExpressCurrentLinkSpeedEncoded,PciExpressCurrentLinkWidth,PciExpressMaxLinkSpeedEncoded,PciExpressMaxLinkWidth",
    ),
    (
        "teams",
        "Get-NetLbfoTeam | Select-Object Name,Members,TeamNics,@{n='Mode';e={[int]$_.TeamingMode}},\
         @{n='Algorithm';e={[string]$_.LoadBalancingAlgorithm}}",
    ),
    (
        "members",
        "Get-NetLbfoTeamMember | Select-Object Name,Team,@{n='Administrative';e={[int]$_.AdministrativeMode}},\
         @{n='Operational';e={[int]$_.OperationalMode}},@{n='Failure';e={[int]$_.FailureReason}}",
    ),
    (
        "statistics",
        "Get-NetAdapterStatistics | Select-Object Name,ReceivedBytes,SentBytes,ReceivedUnicastPackets,ReceivedMulticastPackets,\
         ReceivedBroadcastPackets,SentUnicastPackets,SentMulticastPackets,SentBroadcastPackets,ReceivedDiscardedPackets,\
         OutboundDiscardedPackets,ReceivedPacketErrors,OutboundPacketErrors",
    ),
    ("bindings", "Get-NetAdapterBinding -ComponentID vms_pp | Where-Object Enabled | Select-Object Name"),
    ("switch-teams", "Get-NetSwitchTeam | Select-Object Name,Members"),
];

/// The script, with the route to `peer` where one is meant.
///
/// Each part is printed as soon as it is there. An address consists of digits, letters, points and colons, so nothing can break out of its
/// quotation marks.
pub(super) fn script(peer: Option<IpAddr>) -> String {
    let mut script = String::from(
        "$ErrorActionPreference='SilentlyContinue';$ProgressPreference='SilentlyContinue';\
         try{[Console]::OutputEncoding=New-Object Text.UTF8Encoding $false}catch{};\
         function part($name,$things){$name+' '+(ConvertTo-Json -Compress -Depth 3 -InputObject @($things))};",
    );
    let mut add = |name: &str, pipeline: &str| {
        script.extend(["$t=$null;try{$t=@(", pipeline, ");part '", name, "' $t}catch{};"]);
    };
    for (at, (name, pipeline)) in PARTS.iter().enumerate() {
        add(name, pipeline);
        if let Some(peer) = peer.filter(|_| at == 0) {
            let route = format!(
                "Find-NetRoute -RemoteIPAddress '{peer}' | Where-Object NextHop | Select-Object InterfaceIndex,InterfaceAlias,NextHop"
            );
            add("route", &route);
        }
    }
    script
}
